//! Middleboxes in Java, where this tamis has them (the feature `java`).

pub(crate) use tamis_java::invocation::{Hosting, check, start};
