//! Rows as text for a terminal or a file: psql's aligned table, CSV, JSON.

use std::fmt::Write as _;

use crate::database::Column;

/// How rows are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// As psql does: columns aligned, numbers to the right.
    #[default]
    Aligned,
    /// Comma-separated, with a header.
    Csv,
    /// One array of objects.
    Json,
}

/// Rows to be printed.
#[derive(Clone, Debug, Default)]
pub struct TextTable {
    columns: Vec<Column>,
    rows: Vec<Vec<Option<String>>>,
}

/// Types that psql prints to the right: int2, int4, int8, oid, xid, xid8, cid, float4, float8, numeric, money.
const RIGHT: [u32; 11] = [21, 23, 20, 26, 28, 5069, 29, 700, 701, 1700, 790];

impl TextTable {
    /// A table of these columns.
    pub fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, `None` for NULL.
    pub fn push(&mut self, row: Vec<Option<String>>) {
        self.rows.push(row);
    }

    /// The whole table.
    pub fn print(&self, style: Style) -> String {
        match style {
            Style::Aligned => self.aligned(),
            Style::Csv => self.csv(),
            Style::Json => self.json(),
        }
    }

    fn aligned(&self) -> String {
        let width = |text: &str| text.lines().map(|l| l.chars().count()).max().unwrap_or(0);
        let mut widths: Vec<usize> = self.columns.iter().map(|c| width(&c.name)).collect();
        for row in &self.rows {
            for (w, value) in widths.iter_mut().zip(row) {
                *w = (*w).max(value.as_deref().map_or(0, width));
            }
        }
        let mut out = String::new();
        let mut header = Vec::new();
        for (column, w) in self.columns.iter().zip(&widths) {
            let pad = w - width(&column.name);
            header.push(format!(" {}{}{} ", " ".repeat(pad / 2), column.name, " ".repeat(pad - pad / 2)));
        }
        out.push_str(&header.join("|"));
        out.push('\n');
        out.push_str(&widths.iter().map(|w| "-".repeat(w + 2)).collect::<Vec<_>>().join("+"));
        out.push('\n');
        for row in &self.rows {
            self.row(row, &widths, &mut out);
        }
        let count = self.rows.len();
        let plural = if count == 1 { "" } else { "s" };
        let _ = writeln!(out, "({count} row{plural})");
        out
    }

    /// One row; a value of several lines takes several, each but the last marked with `+`.
    fn row(&self, row: &[Option<String>], widths: &[usize], out: &mut String) {
        let lines: Vec<Vec<&str>> =
            row.iter().map(|v| v.as_deref().map_or_else(Vec::new, |v| v.split('\n').collect())).collect();
        let height = lines.iter().map(Vec::len).max().unwrap_or(0).max(1);
        for line in 0..height {
            let mut cells = Vec::with_capacity(row.len());
            for (i, (column, w)) in self.columns.iter().zip(widths).enumerate() {
                let of = lines.get(i).map_or(&[][..], Vec::as_slice);
                let text = of.get(line).copied().unwrap_or("");
                let pad = " ".repeat(w.saturating_sub(text.chars().count()));
                let more = if line + 1 < of.len() { '+' } else { ' ' };
                let last = i + 1 == self.columns.len();
                if RIGHT.contains(&column.type_oid) {
                    cells.push(format!(" {pad}{text}{more}"));
                } else if last && more == ' ' {
                    cells.push(format!(" {text}"));
                } else {
                    cells.push(format!(" {text}{pad}{more}"));
                }
            }
            let printed = cells.join("|");
            out.push_str(printed.strip_suffix(' ').filter(|_| self.ends_right()).unwrap_or(&printed));
            out.push('\n');
        }
    }

    fn ends_right(&self) -> bool {
        self.columns.last().is_some_and(|c| RIGHT.contains(&c.type_oid))
    }

    fn csv(&self) -> String {
        let quote = |text: &str| {
            let special = text.is_empty() || text.contains(['"', ',', '\n', '\r']) || text == "\\.";
            if special { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
        };
        let mut out = self.columns.iter().map(|c| quote(&c.name)).collect::<Vec<_>>().join(",");
        out.push('\n');
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|v| v.as_deref().map_or_else(String::new, quote)).collect();
            out.push_str(&cells.join(","));
            out.push('\n');
        }
        out
    }

    /// Numbers and booleans stay what they are where JSON can hold them; all else is a string.
    fn json(&self) -> String {
        let value = |column: &Column, text: &Option<String>| match text {
            None => serde_json::Value::Null,
            Some(text) => match column.type_oid {
                16 => serde_json::Value::Bool(text == "t"),
                oid if RIGHT.contains(&oid) && oid != 790 => match serde_json::from_str(text) {
                    Ok(number @ serde_json::Value::Number(_)) => number,
                    _ => serde_json::Value::String(text.clone()),
                },
                _ => serde_json::Value::String(text.clone()),
            },
        };
        let object = |row: &Vec<Option<String>>| {
            let pairs = self.columns.iter().zip(row).map(|(c, v)| (c.name.clone(), value(c, v)));
            serde_json::Value::Object(pairs.collect())
        };
        let rows: Vec<String> = self.rows.iter().map(|r| format!("  {}", object(r))).collect();
        if rows.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", rows.join(",\n")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        let columns = [("id", 23), ("text", 25)].map(|(n, type_oid)| Column { name: n.to_owned(), type_oid });
        let mut table = TextTable::new(&columns);
        table.push(vec![Some("1".to_owned()), Some("a, \"b\"".to_owned())]);
        table.push(vec![Some("100".to_owned()), None]);
        table
    }

    #[test]
    fn aligned_as_psql_does() {
        let expected = " id  |  text  \n-----+--------\n   1 | a, \"b\"\n 100 | \n(2 rows)\n";
        assert_eq!(table().print(Style::Aligned), expected);
    }

    #[test]
    fn csv_quotes_what_needs_it() {
        assert_eq!(table().print(Style::Csv), "id,text\n1,\"a, \"\"b\"\"\"\n100,\n");
    }

    #[test]
    fn json_keeps_numbers() {
        let expected = "[\n  {\"id\":1,\"text\":\"a, \\\"b\\\"\"},\n  {\"id\":100,\"text\":null}\n]\n";
        assert_eq!(table().print(Style::Json), expected);
    }
}
