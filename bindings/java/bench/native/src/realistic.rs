//! `dev.tamis.bench.Native`, the realistic job: frames, polled by Java or handed to it by an upcall for each burst.
//!
//! Contract: handles of frames come from `frames` and are used by one thread until `closeFrames`.

use jni_sys::{jclass, jint, jlong, jobject, jvalue};

use crate::env::Env;
use crate::frames::Frames;
use crate::{close, handle_of, lend};

/// The frames of a handle, for the length of one native method.
macro_rules! frames {
    ($handle:expr) => {{
        // SAFETY: the handle is `Native.frames`', and its one thread is in this method.
        let frames: &mut Frames = unsafe { lend($handle) };
        frames
    }};
}
pub(crate) use frames;

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_frames(_: Env, _: jclass) -> jlong {
    handle_of(Frames::new())
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_closeFrames(_: Env, _: jclass, handle: jlong) {
    // SAFETY: the handle is `Native.frames`', and Java does not use it any more.
    unsafe { close::<Frames>(handle) };
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_framesHash(
    _: Env,
    _: jclass,
    handle: jlong,
) -> jlong {
    frames!(handle).hash() as jlong
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_framesFloor(
    _: Env,
    _: jclass,
    handle: jlong,
    packets: jlong,
    burst: jint,
) {
    frames!(handle).floor(packets as u64, burst as usize);
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_framesBase(
    _: Env,
    _: jclass,
    handle: jlong,
) -> jlong {
    frames!(handle).whole().0 as jlong
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_framesBytes(
    _: Env,
    _: jclass,
    handle: jlong,
) -> jlong {
    frames!(handle).whole().1 as jlong
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_framesMapping(
    env: Env,
    _: jclass,
    handle: jlong,
) -> jobject {
    env.buffer(frames!(handle).whole())
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_descriptors(
    _: Env,
    _: jclass,
    handle: jlong,
) -> jlong {
    frames!(handle).descriptors() as jlong
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_descriptorsMapping(
    env: Env,
    _: jclass,
    handle: jlong,
) -> jobject {
    let bytes = size_of::<crate::nat::Descriptor>() * crate::frames::BURST;
    env.buffer((frames!(handle).descriptors().cast(), bytes))
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_framesPoll(
    _: Env,
    _: jclass,
    handle: jlong,
    most: jint,
) -> jint {
    frames!(handle).poll(most as usize) as jint
}

/// Rust is the one that polls, and calls `void burst(int)` of Java's object for each burst.
#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_upcalls(
    env: Env,
    _: jclass,
    handle: jlong,
    packets: jlong,
    burst: jint,
    handler: jobject,
) {
    let method = env.method(env.class_of(handler), c"burst", c"(I)V");
    let mut left = packets;
    while left > 0 {
        let polled = frames!(handle).poll(left.min(burst.into()) as usize);
        env.call(handler, method, jvalue { i: polled as i32 });
        left -= polled as i64;
    }
    frames!(handle).poll(0);
}
