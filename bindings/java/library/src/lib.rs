//! `libtamis_java.so`: the functions of `java_native` as a library that a JVM loads. A crate of its own, so that `tamis`,
//! which links them, is not built with what only a library needs.

pub use java_native::natives;
