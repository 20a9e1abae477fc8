//! Taking a node apart by field name, so that no field is overlooked.

use stegodon_format::ids::{AttrNumber, Oid};
use stegodon_types::{SqlError, SqlResult};

use super::token::{Node, Value, damaged};

/// A node whose fields are taken one by one; [`Fields::end`] refuses it if one was left.
pub(super) struct Fields {
    pub(super) tag: String,
    fields: Vec<(String, Option<Value>)>,
}

fn number(value: &Value) -> Option<i64> {
    match value {
        Value::Word(word) => word.parse().ok(),
        _ => None,
    }
}

impl Fields {
    pub(super) fn new(node: Node) -> Self {
        Self { tag: node.tag, fields: node.fields.into_iter().map(|(name, value)| (name, Some(value))).collect() }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.fields.iter().any(|(n, v)| n == name && v.is_some())
    }

    /// The field's value, once; `None` where the node has no such field.
    pub(super) fn take_opt(&mut self, name: &str) -> Option<Value> {
        self.fields.iter_mut().find(|(n, v)| n == name && v.is_some())?.1.take()
    }

    pub(super) fn take(&mut self, name: &str) -> SqlResult<Value> {
        self.take_opt(name).ok_or_else(|| damaged(format!("{} has no field {name}", self.tag)))
    }

    fn wrong(&self, name: &str) -> SqlError {
        damaged(format!("field {name} of {} has an unexpected value", self.tag))
    }

    pub(super) fn int(&mut self, name: &str) -> SqlResult<i64> {
        let value = self.take(name)?;
        number(&value).ok_or_else(|| self.wrong(name))
    }

    pub(super) fn i32(&mut self, name: &str) -> SqlResult<i32> {
        self.int(name)?.try_into().map_err(|_| self.wrong(name))
    }

    pub(super) fn u32(&mut self, name: &str) -> SqlResult<u32> {
        self.int(name)?.try_into().map_err(|_| self.wrong(name))
    }

    pub(super) fn index(&mut self, name: &str) -> SqlResult<usize> {
        self.int(name)?.try_into().map_err(|_| self.wrong(name))
    }

    pub(super) fn attno(&mut self, name: &str) -> SqlResult<AttrNumber> {
        Ok(AttrNumber(self.int(name)?.try_into().map_err(|_| self.wrong(name))?))
    }

    pub(super) fn oid(&mut self, name: &str) -> SqlResult<Oid> {
        Ok(Oid(self.u32(name)?))
    }

    pub(super) fn bool(&mut self, name: &str) -> SqlResult<bool> {
        match self.take(name)? {
            Value::Word(w) if w == "true" => Ok(true),
            Value::Word(w) if w == "false" => Ok(false),
            _ => Err(self.wrong(name)),
        }
    }

    /// A `char` field: 0 is written as `<>`.
    pub(super) fn char(&mut self, name: &str) -> SqlResult<u8> {
        match self.take(name)? {
            Value::Null => Ok(0),
            Value::Word(w) => match w.as_bytes() {
                [b] => Ok(*b),
                _ => Err(self.wrong(name)),
            },
            _ => Err(self.wrong(name)),
        }
    }

    /// A `char *` field.
    pub(super) fn string(&mut self, name: &str) -> SqlResult<Option<String>> {
        match self.take(name)? {
            Value::Null => Ok(None),
            Value::Word(w) => Ok(Some(w)),
            // Only the empty string is written in quotes there.
            Value::Text(t) => Ok(Some(t)),
            _ => Err(self.wrong(name)),
        }
    }

    /// A node, or nothing.
    pub(super) fn node(&mut self, name: &str) -> SqlResult<Option<Node>> {
        match self.take(name)? {
            Value::Null => Ok(None),
            Value::Node(node) => Ok(Some(node)),
            _ => Err(self.wrong(name)),
        }
    }

    /// A list of anything; NULL is the empty list.
    pub(super) fn list(&mut self, name: &str) -> SqlResult<Vec<Value>> {
        match self.take(name)? {
            Value::Null => Ok(Vec::new()),
            Value::List(items) => Ok(items),
            _ => Err(self.wrong(name)),
        }
    }

    /// A list of nodes.
    pub(super) fn nodes(&mut self, name: &str) -> SqlResult<Vec<Node>> {
        let items = self.list(name)?;
        items.into_iter().map(|v| if let Value::Node(n) = v { Ok(n) } else { Err(self.wrong(name)) }).collect()
    }

    /// A list of `String` nodes.
    pub(super) fn strings(&mut self, name: &str) -> SqlResult<Vec<String>> {
        let items = self.list(name)?;
        items.into_iter().map(|v| if let Value::Text(t) = v { Ok(t) } else { Err(self.wrong(name)) }).collect()
    }

    fn numbers<T: TryFrom<i64>>(&mut self, name: &str, letter: u8) -> SqlResult<Vec<T>> {
        let numbers = match self.take(name)? {
            Value::Null => Vec::new(),
            Value::Numbers(l, numbers) if l == letter => numbers,
            // An empty list is `()`, whatever it would hold.
            Value::List(items) if items.is_empty() => Vec::new(),
            _ => return Err(self.wrong(name)),
        };
        numbers.into_iter().map(|n| n.try_into().map_err(|_| self.wrong(name))).collect()
    }

    pub(super) fn ints<T: TryFrom<i64>>(&mut self, name: &str) -> SqlResult<Vec<T>> {
        self.numbers(name, b'i')
    }

    pub(super) fn oids(&mut self, name: &str) -> SqlResult<Vec<Oid>> {
        Ok(self.numbers::<u32>(name, b'o')?.into_iter().map(Oid).collect())
    }

    pub(super) fn bitmap(&mut self, name: &str) -> SqlResult<Vec<i32>> {
        self.numbers(name, b'b')
    }

    /// Drops fields that nothing here needs, where present.
    pub(super) fn skip(&mut self, names: &[&str]) {
        for name in names {
            let _unneeded = self.take_opt(name);
        }
    }

    /// Refuses the node unless the field is absent, NULL, an empty list, `false` or 0.
    pub(super) fn refuse(&mut self, name: &str) -> SqlResult<()> {
        match self.take_opt(name) {
            None | Some(Value::Null) => Ok(()),
            Some(Value::Word(w)) if w == "false" || w == "0" => Ok(()),
            Some(Value::List(l)) if l.is_empty() => Ok(()),
            Some(Value::Numbers(_, n)) if n.is_empty() => Ok(()),
            Some(_) => Err(SqlError::unsupported(format!("field {name} of {} in a stored tree", self.tag))),
        }
    }

    /// Every field must have been taken: an unknown one may change the meaning.
    pub(super) fn end(self) -> SqlResult<()> {
        match self.fields.iter().find(|(_, v)| v.is_some()) {
            None => Ok(()),
            Some((name, _)) => Err(SqlError::unsupported(format!("field {name} of {} in a stored tree", self.tag))),
        }
    }
}
