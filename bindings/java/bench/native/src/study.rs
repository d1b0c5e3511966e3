//! `dev.tamis.bench.Native`, the study's job: pools, pointers, bursts of pointers, and copies by byte buffer.
//!
//! Contract: handles of pools come from `pool` and are used by one thread until `close`.

use jni_sys::{jboolean, jclass, jint, jlong, jobject};

use crate::env::Env;
use crate::pool::Pool;
use crate::{close, handle_of, lend};

/// The pool of a handle, for the length of one native method.
macro_rules! pool {
    ($handle:expr) => {{
        // SAFETY: the handle is `Native.pool`'s, and its one thread is in this method.
        let pool: &mut Pool = unsafe { lend($handle) };
        pool
    }};
}
pub(crate) use pool;

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_pool(
    _: Env,
    _: jclass,
    count: jint,
    is_aligned: jboolean,
) -> jlong {
    handle_of(Pool::new(usize::try_from(count).unwrap_or(1), is_aligned))
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_closePool(_: Env, _: jclass, handle: jlong) {
    // SAFETY: the handle is `Native.pool`'s, and Java does not use it any more.
    unsafe { close::<Pool>(handle) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_hash(_: Env, _: jclass, handle: jlong) -> jlong {
    pool!(handle).hash() as jlong
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_floor(
    _: Env,
    _: jclass,
    handle: jlong,
    packets: jlong,
) -> jlong {
    pool!(handle).floor(packets as u64) as jlong
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_base(_: Env, _: jclass, handle: jlong) -> jlong {
    pool!(handle).whole().0 as jlong
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_mapping(
    env: Env,
    _: jclass,
    handle: jlong,
) -> jobject {
    env.buffer(pool!(handle).whole())
}

/// One struct for each call, as the study's program.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_pointer(_: Env, _: jclass, handle: jlong) -> jlong {
    pool!(handle).take().as_mut_ptr() as jlong
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_burst(_: Env, _: jclass, handle: jlong) -> jlong {
    pool!(handle).burst() as jlong
}

/// One burst for each call.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_poll(
    _: Env,
    _: jclass,
    handle: jlong,
    most: jint,
) -> jint {
    pool!(handle).poll(most as usize) as jint
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_takeBuffer(
    env: Env,
    _: jclass,
    handle: jlong,
    buffer: jobject,
) {
    let bytes = pool!(handle).take();
    let to = env.buffer_address(buffer);
    // SAFETY: the buffer is a direct one of at least a struct's size, and no part of the pool.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_giveBuffer(
    env: Env,
    _: jclass,
    handle: jlong,
    buffer: jobject,
) {
    let bytes = pool!(handle).current();
    let from = env.buffer_address(buffer);
    // SAFETY: as in `takeBuffer`.
    unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_takeArray(
    env: Env,
    _: jclass,
    handle: jlong,
    array: jobject,
) {
    env.put_array(array, pool!(handle).take());
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_giveArray(
    env: Env,
    _: jclass,
    handle: jlong,
    array: jobject,
) {
    env.get_array(array, pool!(handle).current());
}
