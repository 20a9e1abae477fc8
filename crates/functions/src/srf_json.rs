//! Set-returning functions of `json` and `jsonb`: elements, pairs, keys.

use arrow_array::ArrayRef;
use stegodon_types::json::jsonb::{Value, encode};
use stegodon_types::json::parse::{Kind, Node, parse};
use stegodon_types::json::{Container, Item, print};
use stegodon_types::{Layout, SqlError, SqlResult, SqlState};

use crate::EvalContext;
use crate::column::ByteBuilder;

/// What the rows are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    Elements,
    Pairs,
    Keys,
}

fn refuse(message: String) -> SqlError {
    SqlError::new(SqlState::InvalidParameterValue, message)
}

/// What is said of a value of the wrong kind.
fn wrong(ask: Ask, name: &str, scalar: bool) -> SqlError {
    refuse(match (ask, scalar) {
        (Ask::Elements, true) => "cannot extract elements from a scalar".into(),
        (Ask::Elements, false) => "cannot extract elements from an object".into(),
        (Ask::Pairs, _) => format!("cannot call {name} on a non-object"),
        (Ask::Keys, true) => format!("cannot call {name} on a scalar"),
        (Ask::Keys, false) => format!("cannot call {name} on an array"),
    })
}

/// The columns being built.
struct Rows {
    keys: ByteBuilder,
    values: ByteBuilder,
    ask: Ask,
    as_text: bool,
}

impl Rows {
    fn new(ask: Ask, as_text: bool) -> Self {
        Rows {
            keys: ByteBuilder::new(Layout::Bytes, 0, 0),
            values: ByteBuilder::new(Layout::Bytes, 0, 0),
            ask,
            as_text,
        }
    }

    fn item(&mut self, item: &Item<'_>) -> SqlResult<()> {
        let out = self.values.buffer();
        match item {
            Item::Null if self.as_text => {
                self.values.end_null();
                return Ok(());
            }
            Item::String(text) if self.as_text => out.extend_from_slice(text),
            other if self.as_text => print::item_text(other, out)?,
            Item::Container(inner) => out.extend_from_slice(inner.bytes()),
            scalar => encode(Value::of_item(scalar)?, out)?,
        }
        self.values.end_value();
        Ok(())
    }

    fn node(&mut self, node: &Node<'_>) {
        match &node.kind {
            Kind::Null if self.as_text => return self.values.end_null(),
            Kind::String(text) if self.as_text => self.values.buffer().extend_from_slice(text),
            _ => self.values.buffer().extend_from_slice(node.text),
        }
        self.values.end_value();
    }

    fn finish(self) -> SqlResult<Vec<ArrayRef>> {
        Ok(match self.ask {
            Ask::Elements => vec![self.values.finish()?],
            Ask::Keys => vec![self.keys.finish()?],
            Ask::Pairs => vec![self.keys.finish()?, self.values.finish()?],
        })
    }
}

/// The rows of a `jsonb`.
pub(crate) fn binary(v: &[u8], ask: Ask, as_text: bool, name: &str) -> SqlResult<Vec<ArrayRef>> {
    let v = Container::new(v)?;
    let mut rows = Rows::new(ask, as_text);
    if (ask == Ask::Elements) != v.is_array() || v.is_scalar() {
        return Err(wrong(ask, name, v.is_scalar()));
    }
    v.for_each_element(|item| rows.item(&item))?;
    v.for_each_pair(|key, item| {
        rows.keys.push(Some(key));
        if ask == Ask::Pairs { rows.item(&item) } else { Ok(()) }
    })?;
    rows.finish()
}

/// The rows of a `json`.
pub(crate) fn text(cx: &EvalContext<'_>, v: &[u8], ask: Ask, as_text: bool, name: &str) -> SqlResult<Vec<ArrayRef>> {
    let mut rows = Rows::new(ask, as_text);
    match parse(v, cx.settings.encoding, true)?.kind {
        Kind::Array(elements) if ask == Ask::Elements => elements.iter().for_each(|node| rows.node(node)),
        Kind::Object(pairs) if ask != Ask::Elements => {
            for (key, node) in &pairs {
                rows.keys.push(Some(key));
                if ask == Ask::Pairs {
                    rows.node(node);
                }
            }
        }
        Kind::Array(_) if ask == Ask::Pairs => return Err(refuse("cannot deconstruct an array as an object".into())),
        _ if ask == Ask::Pairs => return Err(refuse("cannot deconstruct a scalar".into())),
        Kind::Object(_) if ask == Ask::Elements => {
            return Err(refuse(format!("cannot call {name} on a non-array")));
        }
        Kind::Array(_) | Kind::Object(_) => return Err(wrong(ask, name, false)),
        _ if ask == Ask::Elements => return Err(refuse(format!("cannot call {name} on a scalar"))),
        _ => return Err(wrong(ask, name, true)),
    }
    rows.finish()
}
