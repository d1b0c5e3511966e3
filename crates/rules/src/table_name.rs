//! [`TableName`]: what a table is called, shared by all that name it.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// The name of a table: `filter`, `nat`, …; of nft with its family: `inet filter`. A copy shares its text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableName(Arc<str>);

impl Deref for TableName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for TableName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<String> for TableName {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}

impl PartialEq<str> for TableName {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for TableName {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}
