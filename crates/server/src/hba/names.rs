//! A name in a list of databases or users: itself, a keyword, a group or a pattern.

use stegodon_functions::Pattern;

use super::rules::Asking;
use super::tokens::Token;

/// One entry of a list.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    pub token: Token,
    pattern: Option<Pattern>,
}

impl Name {
    /// Reads a token: behind a slash there is a pattern, quoted or not.
    pub(crate) fn new(token: Token) -> Result<Self, String> {
        let pattern = token.text.strip_prefix('/').map(pattern).transpose()?;
        Ok(Self { token, pattern })
    }

    /// A token that means nothing but itself.
    pub(crate) fn literal(token: Token) -> Self {
        Self { token, pattern: None }
    }

    /// The pattern, where it is one.
    pub(crate) fn pattern(&self) -> Option<&Pattern> {
        self.pattern.as_ref()
    }

    /// The group, where it means its members.
    pub(crate) fn group(&self) -> Option<&str> {
        self.token.text.strip_prefix('+').filter(|_| !self.token.quoted)
    }

    /// Whether it means the database that is asked for.
    pub(crate) fn is_database(&self, asking: &Asking<'_>, is_member: &dyn Fn(&str) -> bool) -> Result<bool, String> {
        let keyword = |k| self.token.is_keyword(k);
        if asking.physical_replication {
            return Ok(keyword("replication"));
        }
        Ok(if keyword("all") {
            true
        } else if keyword("sameuser") {
            asking.database == asking.user
        } else if keyword("samerole") || keyword("samegroup") {
            is_member(asking.database)
        } else if keyword("replication") {
            false
        } else {
            self.is_text(asking.database)?
        })
    }

    /// Whether it means the user.
    pub(crate) fn is_user(&self, user: &str, is_member: &dyn Fn(&str) -> bool) -> Result<bool, String> {
        match self.group() {
            Some(group) => Ok(is_member(group)),
            None if self.token.is_keyword("all") => Ok(true),
            None => self.is_text(user),
        }
    }

    fn is_text(&self, text: &str) -> Result<bool, String> {
        match &self.pattern {
            Some(pattern) => Ok(pattern.find(text).map_err(|e| e.message)?.is_some()),
            None => Ok(self.token.text == text),
        }
    }
}

fn pattern(text: &str) -> Result<Pattern, String> {
    let reworded = |message: String| match message.strip_prefix("invalid regular expression: ") {
        Some(why) => format!("invalid regular expression \"{text}\": {why}"),
        None => format!("regular expression \"{text}\": {message}"),
    };
    Pattern::new(text).map_err(|e| reworded(e.message))
}
