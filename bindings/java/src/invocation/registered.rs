//! The functions of the class `dev.tamis.Native` in a JVM that tamis has started: this program's, and no library's.
//!
//! Contract: all that the class declares. The compiler compares signatures here with the functions', the JVM with the
//! class's.

use jni::{NativeMethod, jni_sig, jni_str, native_method};

use super::jvm::Jvm;
use crate::natives;

/// Makes this program the JVM's `Native`.
///
/// # Errors
/// The class path has no tamis for Java, or one of another version.
pub(super) fn register(jvm: &Jvm) -> Result<(), String> {
    let done = jvm.inside(|env| {
        let native = env.find_class(jni_str!("dev/tamis/Native"))?;
        // SAFETY: all are static in Java, and take a class after their environment.
        #[expect(unsafe_code, reason = "the JVM calls what it is given")]
        unsafe {
            env.register_native_methods(&native, FUNCTIONS)?;
        }
        let library = env.find_class(jni_str!("dev/tamis/NativeLibrary"))?;
        env.call_static_method(library, jni_str!("registered"), jni_sig!("()V"), &[]).map(drop)
    });
    done.map_err(|why| {
        format!("expected tamis for Java, of this version, among the files of jar: {why}")
    })
}

const FUNCTIONS: &[NativeMethod<'static>] = &[
    native_method! { static raw fn layout(offsets: jlong[]) -> jint, fn = natives::layout },
    native_method! { static raw fn open(toml: JString, place: JString) -> jlong, fn = natives::open },
    native_method! { static raw fn start(run: jlong) -> jint, fn = natives::start },
    native_method! { static raw fn worker(run: jlong, number: jint) -> jlong, fn = natives::worker },
    native_method! { static raw fn descriptors(worker: jlong) -> jlong, fn = natives::descriptors },
    native_method! { static raw fn poll(worker: jlong, timeout: jlong) -> jint, fn = natives::poll },
    native_method! { static raw fn pin(core: jint), fn = natives::pin },
    native_method! { static raw fn stop(run: jlong), fn = natives::stop },
    native_method! { static raw fn status(run: jlong) -> JString, fn = natives::status },
    native_method! { static raw fn request(run: jlong, line: JString) -> JString, fn = natives::request },
    native_method! {
        name = "await",
        static raw fn await_end(run: jlong, timeout: jlong) -> JString,
        fn = natives::await_end
    },
    native_method! { static raw fn close_worker(worker: jlong), fn = natives::close_worker },
    native_method! { static raw fn close_run(run: jlong), fn = natives::close_run },
    native_method! { static raw fn topology() -> JString, fn = natives::topology },
    native_method! {
        static raw fn properties(file: JString, text: JString) -> JString, fn = natives::properties
    },
    native_method! {
        static raw fn replay(rules: JString[], captures: JString[], options: JString) -> JString,
        fn = natives::replay
    },
    native_method! {
        static raw fn why(rules: JString[], capture: JString, number: jlong, options: JString) -> JString,
        fn = natives::why
    },
];
