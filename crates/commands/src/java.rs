//! Middleboxes in Java, where this tamis has them (the feature `java`).

pub(crate) use java_native::invocation::{Hosting, check, start};
