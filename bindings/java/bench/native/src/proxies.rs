//! `dev.tamis.bench.SwigNative`: what Swig writes in C for a struct, a function to read each field and one to write it.
//!
//! Contract: the address is that of a packed struct of a pool, which its one thread keeps; the proxy is there so that the
//! collector does not take it during the call, and is not used.

use jni_sys::{jclass, jint, jlong, jobject};

use crate::env::Env;
use crate::fields::PACKED;

/// Both functions of a field: their names, the field's number and its types in C and in Java.
macro_rules! field {
    ($get:ident, $set:ident, $field:expr, $type:ty, $java:ty) => {
        #[unsafe(no_mangle)]
        extern "system" fn $get(_: Env, _: jclass, address: jlong, _: jobject) -> $java {
            let at = (address as usize + PACKED[$field]) as *const $type;
            // SAFETY: the address is that of a struct of a pool, which nothing else reads or writes meanwhile.
            (unsafe { at.read_unaligned() }) as $java
        }

        #[unsafe(no_mangle)]
        extern "system" fn $set(_: Env, _: jclass, address: jlong, _: jobject, value: $java) {
            let at = (address as usize + PACKED[$field]) as *mut $type;
            // SAFETY: as above.
            unsafe { at.write_unaligned(value as $type) };
        }
    };
}

field!(
    Java_dev_tamis_bench_SwigNative_getPort,
    Java_dev_tamis_bench_SwigNative_setPort,
    0,
    u8,
    jint
);
field!(
    Java_dev_tamis_bench_SwigNative_getVlan,
    Java_dev_tamis_bench_SwigNative_setVlan,
    1,
    u16,
    jint
);
field!(
    Java_dev_tamis_bench_SwigNative_getLength,
    Java_dev_tamis_bench_SwigNative_setLength,
    2,
    u32,
    jlong
);
field!(
    Java_dev_tamis_bench_SwigNative_getFlags,
    Java_dev_tamis_bench_SwigNative_setFlags,
    3,
    i64,
    jlong
);
field!(
    Java_dev_tamis_bench_SwigNative_getKind,
    Java_dev_tamis_bench_SwigNative_setKind,
    4,
    u8,
    jint
);
field!(
    Java_dev_tamis_bench_SwigNative_getQueue,
    Java_dev_tamis_bench_SwigNative_setQueue,
    5,
    u16,
    jint
);
field!(
    Java_dev_tamis_bench_SwigNative_getHash,
    Java_dev_tamis_bench_SwigNative_setHash,
    6,
    u32,
    jlong
);
field!(
    Java_dev_tamis_bench_SwigNative_getTime,
    Java_dev_tamis_bench_SwigNative_setTime,
    7,
    i64,
    jlong
);
field!(
    Java_dev_tamis_bench_SwigNative_getHeadroom,
    Java_dev_tamis_bench_SwigNative_setHeadroom,
    8,
    u16,
    jint
);
field!(
    Java_dev_tamis_bench_SwigNative_getAddress,
    Java_dev_tamis_bench_SwigNative_setAddress,
    9,
    i64,
    jlong
);
field!(
    Java_dev_tamis_bench_SwigNative_getNext,
    Java_dev_tamis_bench_SwigNative_setNext,
    10,
    i64,
    jlong
);
field!(
    Java_dev_tamis_bench_SwigNative_getUser,
    Java_dev_tamis_bench_SwigNative_setUser,
    11,
    i64,
    jlong
);
