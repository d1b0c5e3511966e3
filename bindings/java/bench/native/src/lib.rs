//! The native half of the Java benchmark: what a C program is to the study "data sharing between native code and Java",
//! with frames instead of its one static struct where the job is a realistic one.
//!
//! Contract: loaded by the benchmark's JVM alone, never part of what ships. Each handle belongs to one thread. A round of
//! the floor does the same work in Rust, so every way to hand packets to Java is compared, byte by byte, with it.
//! Names of the functions are those of `dev.tamis.bench.Native` (JNI), or begin with `tamis_bench_` (plain C, for
//! `java.lang.foreign` and JNA).
#![allow(unsafe_code)]

pub mod fields;
pub mod frames;
pub mod nat;
pub mod pool;

mod env;
mod objects;
mod plain;
mod proxies;
mod realistic;
mod study;

/// Lends what a handle of Java's stands for.
///
/// # Safety
/// `handle` comes from [`handle_of`] with the same `T`, was not closed, and is lent to nobody else.
unsafe fn lend<'a, T>(handle: i64) -> &'a mut T {
    // SAFETY: the caller's contract.
    unsafe { &mut *(handle as *mut T) }
}

/// The handle of a value, which is Java's from now on.
fn handle_of<T>(value: T) -> i64 {
    Box::into_raw(Box::new(value)) as i64
}

/// Takes a value back.
///
/// # Safety
/// As [`lend`]; the handle is not used any more.
unsafe fn close<T>(handle: i64) {
    // SAFETY: the caller's contract.
    drop(unsafe { Box::from_raw(handle as *mut T) });
}
