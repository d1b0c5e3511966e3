//! [`Upcalls`]: the threads of a run's workers, each of which calls its handler in Java for every burst.
//!
//! Contract: a thread carries out the verdicts of the burst before, waits for the next, and calls `dev.tamis.Upcall.take` with
//! the number of its packets, which Java reads and judges by the descriptors' address: as where Java polls, but for who calls
//! whom. A call gives Java two numbers and takes one back, so nothing of the JVM's or of ours is made for it. A worker whose
//! handler cannot begin is given up, which ends its run.

use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jni::errors;
use jni::ids::JMethodID;
use jni::objects::{JObject, JObjectArray, JString};
use jni::refs::Global;
use jni::signature::{Primitive, ReturnType};
use jni::strings::JNIString;
use jni::sys::{jint, jlong, jvalue};
use jni::vm::AttachConfig;
use jni::{Env, JValue, jni_sig, jni_str};
use live::{Hosted, Polled};

use super::jvm::{Jvm, thrown};

/// Time without a packet after which a handler's `idle` is called.
const IDLE: Duration = Duration::from_millis(100);

/// How long handlers may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often they are looked at then.
const LOOK: Duration = Duration::from_millis(5);

/// References to objects of Java that a thread has at a time; a call makes none.
const LOCALS: usize = 16;

/// A handler for each worker, that were made and have seen nothing yet.
#[derive(Debug)]
pub(super) struct Handlers(Global<JObjectArray<'static, JObject<'static>>>);

/// The threads of all workers.
#[derive(Debug)]
pub(super) struct Upcalls(Vec<JoinHandle<Result<(), String>>>);

/// A worker, with its object of `dev.tamis.Upcall`.
struct Worker {
    hosted: Hosted,
    upcall: Global<JObject<'static>>,
    take: JMethodID,
}

impl Handlers {
    /// Objects of a class.
    ///
    /// # Errors
    /// There is none, or none can be made.
    pub(super) fn new(jvm: &Jvm, class: &str, workers: usize) -> Result<Self, String> {
        jvm.inside(|env| {
            let upcall = env.find_class(jni_str!("dev/tamis/Upcall"))?;
            let class = JString::from_str(env, class)?;
            let signature = jni_sig!("(Ljava/lang/String;I)[Ldev/tamis/Handler;");
            let values = [JValue::Object(&class), JValue::Int(workers as jint)];
            let made = env.call_static_method(upcall, jni_str!("handlers"), signature, &values)?;
            let made = env.cast_local::<JObjectArray<'_, JObject<'_>>>(made.l()?)?;
            Ok(Self(env.new_global_ref(made)?))
        })
    }
}

impl Upcalls {
    /// Starts a thread for each worker of the run that Java knows by this number.
    ///
    /// # Errors
    /// There are no threads left, or Java has no memory left: workers without a thread are given up.
    pub(super) fn begin(
        jvm: &Jvm,
        handlers: &Handlers,
        run: jlong,
        workers: Vec<Hosted>,
    ) -> Result<Self, String> {
        let (made, take) = jvm.inside(|env| upcalls(env, handlers, run))?;
        let mut threads = Vec::new();
        for (hosted, upcall) in workers.into_iter().zip(made) {
            let (vm, worker) = (jvm.vm.clone(), Worker { hosted, upcall, take });
            let name = format!("tamis-worker-{}", worker.hosted.number());
            let in_java = JNIString::from(&*name);
            let work = move || {
                let attached = || AttachConfig::new().scoped(true).thread_name(&in_java);
                let work = |env: &mut Env<'_>| {
                    let worked = worker.work(env);
                    Ok::<_, errors::Error>(worked.map_err(|error| thrown(env, &error)))
                };
                let worked = vm.attach_current_thread_with_config(attached, Some(LOCALS), work);
                worked.unwrap_or_else(|error| Err(error.to_string()))
            };
            let thread = thread::Builder::new().name(name).spawn(work);
            threads.push(thread.map_err(|error| format!("threads: {error}"))?);
        }
        Ok(Self(threads))
    }

    /// Waits until the handlers have ended, which they do after their run: whether they have. `tell` is given what went
    /// wrong besides what they have thrown.
    pub(super) fn end(self, mut tell: impl FnMut(&str)) -> bool {
        let until = Instant::now() + PATIENCE;
        while !self.0.iter().all(JoinHandle::is_finished) && Instant::now() < until {
            thread::sleep(LOOK);
        }
        let (ended, left): (Vec<_>, Vec<_>) = self.0.into_iter().partition(JoinHandle::is_finished);
        // A panic is on standard error.
        let failed = ended.into_iter().filter_map(|thread| thread.join().ok()?.err());
        failed.for_each(|error| tell(&format!("a handler's thread: {error}")));
        left.is_empty()
    }
}

impl Worker {
    /// Works from the beginning of the handler to its end, which comes after the run's.
    fn work(self, env: &mut Env<'_>) -> errors::Result<()> {
        let Self { mut hosted, upcall, take } = self;
        if let Some(core) = hosted.core() {
            // One that may not be pinned runs anywhere, as any worker does.
            let _ = Hosted::pin(core);
        }
        let descriptors = hosted.descriptors().as_mut_ptr().expose_provenance() as jlong;
        let at = [JValue::Long(descriptors)];
        let begun = env.call_method(&upcall, jni_str!("begin"), jni_sig!("(J)Z"), &at)?.z()?;
        let mut goes = begun;
        while goes {
            let waiting = match hosted.poll(IDLE) {
                Polled::Frames(count) => count as jint,
                Polled::Idle => 0,
                Polled::Ended => break,
            };
            goes = taken(env, &upcall, take, waiting)?;
        }
        // One that has not ended is given up before its handler ends.
        drop(hosted);
        env.call_method(&upcall, jni_str!("close"), jni_sig!("()V"), &[]).map(drop)
    }
}

/// Lets the handler take a burst; returns whether it goes on.
#[inline]
fn taken(
    env: &mut Env<'_>,
    upcall: &Global<JObject<'static>>,
    take: JMethodID,
    waiting: jint,
) -> errors::Result<bool> {
    let (returned, waiting) = (ReturnType::Primitive(Primitive::Boolean), [jvalue { i: waiting }]);
    // SAFETY: the method was found by this name and signature, `(I)Z`, in the class that the object was made of.
    #[expect(unsafe_code, reason = "a call by the method's number: none is looked up for a burst")]
    let went = unsafe { env.call_method_unchecked(upcall, take, returned, &waiting) };
    went?.z()
}

/// An object of `Upcall` for each handler, and its method `take`.
fn upcalls(
    env: &mut Env<'_>,
    Handlers(handlers): &Handlers,
    run: jlong,
) -> errors::Result<(Vec<Global<JObject<'static>>>, JMethodID)> {
    let class = env.find_class(jni_str!("dev/tamis/Upcall"))?;
    let take = env.get_method_id(&class, jni_str!("take"), jni_sig!("(I)Z"))?;
    let signature = jni_sig!("([Ldev/tamis/Handler;J)[Ldev/tamis/Upcall;");
    let values = [JValue::Object(handlers), JValue::Long(run)];
    let made = env.call_static_method(class, jni_str!("workers"), signature, &values)?;
    let made = env.cast_local::<JObjectArray<'_, JObject<'_>>>(made.l()?)?;
    let count = made.len(env)?;
    let object = |at| {
        let object = made.get_element(env, at)?;
        env.new_global_ref(object)
    };
    let objects = (0..count).map(object).collect::<errors::Result<_>>()?;
    Ok((objects, take))
}
