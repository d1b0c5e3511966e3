//! The study's objects: a Java packet filled, and read back, field by field by way of JNI.
//!
//! Contract: `take…` fills the packet that Java made with the next struct, `make…` makes it here, `give…` writes it back to
//! the struct that was taken last. `…Lookup` finds the class, and the method of each field, in each call, as the study's
//! program does; `…Methods` has found them once; `…Fields` has found the fields, and calls no method.

use std::ffi::CStr;
use std::sync::OnceLock;

use jni_sys::{jclass, jfieldID, jlong, jmethodID, jobject, jvalue};

use crate::env::Env;
use crate::fields::{self, COUNT, PACKED, SIZES};
use crate::lend;
use crate::pool::Pool;
use crate::study::pool;

const CLASS: &CStr = c"dev/tamis/bench/Packet";

/// Fields by name, with the names of their methods.
const NAMES: [(&CStr, &CStr, &CStr); COUNT] = [
    (c"port", c"getPort", c"setPort"),
    (c"vlan", c"getVlan", c"setVlan"),
    (c"length", c"getLength", c"setLength"),
    (c"flags", c"getFlags", c"setFlags"),
    (c"kind", c"getKind", c"setKind"),
    (c"queue", c"getQueue", c"setQueue"),
    (c"hash", c"getHash", c"setHash"),
    (c"time", c"getTime", c"setTime"),
    (c"headroom", c"getHeadroom", c"setHeadroom"),
    (c"address", c"getAddress", c"setAddress"),
    (c"next", c"getNext", c"setNext"),
    (c"user", c"getUser", c"setUser"),
];

/// Of 1 and 2 bytes: an int in Java; else a long.
fn is_int(field: usize) -> bool {
    SIZES[field] <= 2
}

fn get(bytes: &[u8], field: usize) -> u64 {
    fields::get(bytes, PACKED[field], SIZES[field])
}

fn put(bytes: &mut [u8], field: usize, value: u64) {
    fields::put(bytes, PACKED[field], SIZES[field], value);
}

/// What the JVM need not be asked again.
struct Found {
    class: jclass,
    constructor: jmethodID,
    getters: [jmethodID; COUNT],
    setters: [jmethodID; COUNT],
    fields: [jfieldID; COUNT],
}

// SAFETY: the class is a global reference, and members are valid in every thread as long as their class is loaded.
unsafe impl Send for Found {}
// SAFETY: nothing in it changes.
unsafe impl Sync for Found {}

static FOUND: OnceLock<Found> = OnceLock::new();

fn found(env: Env) -> &'static Found {
    FOUND.get_or_init(|| {
        let class = env.keep(env.find_class(CLASS));
        Found {
            class,
            constructor: constructor(env, class),
            getters: std::array::from_fn(|field| getter(env, class, field)),
            setters: std::array::from_fn(|field| setter(env, class, field)),
            fields: std::array::from_fn(|field| {
                env.field(class, NAMES[field].0, if is_int(field) { c"I" } else { c"J" })
            }),
        }
    })
}

fn constructor(env: Env, class: jclass) -> jmethodID {
    env.method(class, c"<init>", c"()V")
}

fn getter(env: Env, class: jclass, field: usize) -> jmethodID {
    env.method(class, NAMES[field].1, if is_int(field) { c"()I" } else { c"()J" })
}

fn setter(env: Env, class: jclass, field: usize) -> jmethodID {
    env.method(class, NAMES[field].2, if is_int(field) { c"(I)V" } else { c"(J)V" })
}

fn call_setter(env: Env, packet: jobject, field: usize, setter: jmethodID, value: u64) {
    let argument =
        if is_int(field) { jvalue { i: value as i32 } } else { jvalue { j: value as i64 } };
    env.call(packet, setter, argument);
}

fn call_getter(env: Env, packet: jobject, field: usize, getter: jmethodID) -> u64 {
    if is_int(field) {
        env.call_int(packet, getter) as u64
    } else {
        env.call_long(packet, getter) as u64
    }
}

/// By methods that are looked up one by one.
fn fill_lookup(env: Env, packet: jobject, class: jclass, pool: &mut Pool) {
    let bytes = pool.take();
    for field in 0..COUNT {
        call_setter(env, packet, field, setter(env, class, field), get(bytes, field));
    }
}

/// By methods that were found before.
fn fill_methods(env: Env, packet: jobject, pool: &mut Pool) {
    let bytes = pool.take();
    for (field, setter) in found(env).setters.into_iter().enumerate() {
        call_setter(env, packet, field, setter, get(bytes, field));
    }
}

/// Into the fields themselves.
fn fill_fields(env: Env, packet: jobject, pool: &mut Pool) {
    let bytes = pool.take();
    for (index, field) in found(env).fields.into_iter().enumerate() {
        let value = get(bytes, index);
        if is_int(index) {
            env.put_int(packet, field, value as i32);
        } else {
            env.put_long(packet, field, value as i64);
        }
    }
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_takeLookup(
    env: Env,
    _: jclass,
    handle: jlong,
    packet: jobject,
) {
    fill_lookup(env, packet, env.class_of(packet), pool!(handle));
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_makeLookup(
    env: Env,
    _: jclass,
    handle: jlong,
) -> jobject {
    let class = env.find_class(CLASS);
    let packet = env.make(class, constructor(env, class));
    fill_lookup(env, packet, class, pool!(handle));
    packet
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_giveLookup(
    env: Env,
    _: jclass,
    handle: jlong,
    packet: jobject,
) {
    let class = env.find_class(CLASS);
    let bytes = pool!(handle).current();
    for field in 0..COUNT {
        put(bytes, field, call_getter(env, packet, field, getter(env, class, field)));
    }
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_takeMethods(
    env: Env,
    _: jclass,
    handle: jlong,
    packet: jobject,
) {
    fill_methods(env, packet, pool!(handle));
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_makeMethods(
    env: Env,
    _: jclass,
    handle: jlong,
) -> jobject {
    let packet = env.make(found(env).class, found(env).constructor);
    fill_methods(env, packet, pool!(handle));
    packet
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_giveMethods(
    env: Env,
    _: jclass,
    handle: jlong,
    packet: jobject,
) {
    let bytes = pool!(handle).current();
    for (field, getter) in found(env).getters.into_iter().enumerate() {
        put(bytes, field, call_getter(env, packet, field, getter));
    }
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_takeFields(
    env: Env,
    _: jclass,
    handle: jlong,
    packet: jobject,
) {
    fill_fields(env, packet, pool!(handle));
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_makeFields(
    env: Env,
    _: jclass,
    handle: jlong,
) -> jobject {
    let packet = env.make(found(env).class, found(env).constructor);
    fill_fields(env, packet, pool!(handle));
    packet
}

#[unsafe(no_mangle)]
extern "system" fn Java_dev_tamis_bench_Native_giveFields(
    env: Env,
    _: jclass,
    handle: jlong,
    packet: jobject,
) {
    let bytes = pool!(handle).current();
    for (index, field) in found(env).fields.into_iter().enumerate() {
        let value = if is_int(index) {
            env.int(packet, field) as u64
        } else {
            env.long(packet, field) as u64
        };
        put(bytes, index, value);
    }
}
