//! The functions of the class `dev.tamis.Native`, whose documentation says what each does.
//!
//! Contract: each takes what Java gives it apart, and calls what knows no JVM. All enter through `enter`.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use jni::objects::{JClass, JLongArray, JObjectArray, JString};
use jni::sys::{jint, jlong};
use jni::{Env, EnvUnowned, jni_mangle};
use live::config::properties;
use live::{Descriptor, Hosted, LAYOUT_VERSION, Polled};

use crate::entry::{Thrown, enter};
use crate::handles::{Kind, Lost, Table};
use crate::live::{BURST, JavaRun, Started};
use crate::{offline, places};

static RUNS: LazyLock<Table<Arc<JavaRun>>> = LazyLock::new(|| Table::new(Kind::Run, 256));
static WORKERS: LazyLock<Table<Hosted>> = LazyLock::new(|| Table::new(Kind::Worker, 4096));

fn started(run: jlong) -> Result<Arc<Started>, Thrown> {
    RUNS.get(run)?.started()
}

/// A run that tamis itself has started: its number.
#[cfg(feature = "invocation")]
pub(crate) fn knows(started: &Arc<Started>) -> Result<jlong, Lost> {
    RUNS.insert(Arc::new(JavaRun::of_host(started)))
}

/// Negative ones are none.
fn nanos(nanos: jlong) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

/// Version of the layout of descriptors; fills in its numbers.
#[jni_mangle("dev.tamis.Native")]
pub fn layout<'l>(env: EnvUnowned<'l>, _: JClass<'l>, offsets: JLongArray<'l>) -> jint {
    enter(env, |env| {
        let sizes = [size_of::<Descriptor>(), BURST];
        let fields = Descriptor::FIELDS.map(|(_, offset)| offset);
        let numbers: Vec<jlong> = sizes.into_iter().chain(fields).map(|n| n as jlong).collect();
        offsets.set_region(env, 0, &numbers)?;
        Ok(LAYOUT_VERSION as jint)
    })
}

/// A run to be.
#[jni_mangle("dev.tamis.Native")]
pub fn open<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    toml: JString<'l>,
    place: JString<'l>,
) -> jlong {
    enter(env, |env| {
        let (toml, place) = (toml.try_to_string(env)?, place.try_to_string(env)?);
        Ok(RUNS.insert(Arc::new(JavaRun::configured(&toml, &place)?))?)
    })
}

/// Starts it.
#[jni_mangle("dev.tamis.Native")]
pub fn start<'l>(env: EnvUnowned<'l>, _: JClass<'l>, run: jlong) -> jint {
    enter(env, |_| Ok(RUNS.get(run)?.start()? as jint))
}

/// A worker of it.
#[jni_mangle("dev.tamis.Native")]
pub fn worker<'l>(env: EnvUnowned<'l>, _: JClass<'l>, run: jlong, number: jint) -> jlong {
    enter(env, |_| {
        let worker = usize::try_from(number).unwrap_or(usize::MAX);
        started(run)?.worker(worker, |worker| WORKERS.insert(worker))
    })
}

/// Where its descriptors are.
#[jni_mangle("dev.tamis.Native")]
pub fn descriptors<'l>(env: EnvUnowned<'l>, _: JClass<'l>, worker: jlong) -> jlong {
    enter(env, |_| {
        let first = |worker: &mut Hosted| worker.descriptors().as_mut_ptr();
        Ok(WORKERS.with(worker, first)?.expose_provenance() as jlong)
    })
}

/// Commits verdicts, waits for frames.
#[jni_mangle("dev.tamis.Native")]
pub fn poll<'l>(env: EnvUnowned<'l>, _: JClass<'l>, worker: jlong, timeout: jlong) -> jint {
    enter(env, |_| {
        let polled = WORKERS.with(worker, |worker| worker.poll(nanos(timeout)))?;
        Ok(match polled {
            Polled::Frames(count) => count as jint,
            Polled::Idle => 0,
            Polled::Ended => -1,
        })
    })
}

/// Binds the calling thread to a core.
#[jni_mangle("dev.tamis.Native")]
pub fn pin<'l>(env: EnvUnowned<'l>, _: JClass<'l>, core: jint) {
    enter(env, |_| places::pin(core))
}

/// Asks a run to end.
#[jni_mangle("dev.tamis.Native")]
pub fn stop<'l>(env: EnvUnowned<'l>, _: JClass<'l>, run: jlong) {
    enter(env, |_| {
        started(run)?.stop();
        Ok(())
    })
}

/// What it has done so far.
#[jni_mangle("dev.tamis.Native")]
pub fn status<'l>(env: EnvUnowned<'l>, _: JClass<'l>, run: jlong) -> JString<'l> {
    enter(env, |env| Ok(env.new_string(started(run)?.status())?))
}

/// Answers a line of the control protocol.
#[jni_mangle("dev.tamis.Native")]
pub fn request<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    run: jlong,
    line: JString<'l>,
) -> JString<'l> {
    enter(env, |env| {
        let answer = started(run)?.answer(&line.try_to_string(env)?);
        Ok(env.new_string(answer)?)
    })
}

/// Waits for its end.
#[jni_mangle("dev.tamis.Native", "await")]
pub fn await_end<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    run: jlong,
    timeout: jlong,
) -> JString<'l> {
    enter(env, |env| match started(run)?.wait(nanos(timeout))? {
        Some(status) => Ok(env.new_string(status)?),
        None => Ok(JString::null()),
    })
}

/// Gives a worker up.
#[jni_mangle("dev.tamis.Native")]
pub fn close_worker<'l>(env: EnvUnowned<'l>, _: JClass<'l>, worker: jlong) {
    enter(env, |_| {
        WORKERS.remove(worker)?;
        Ok(())
    })
}

/// Gives a run up, and what it has of workers that nobody polls.
#[jni_mangle("dev.tamis.Native")]
pub fn close_run<'l>(env: EnvUnowned<'l>, _: JClass<'l>, run: jlong) {
    enter(env, |_| {
        if let Ok(started) = RUNS.get(run)?.started() {
            started.stop();
            for worker in started.given() {
                match WORKERS.remove(worker) {
                    Err(busy @ Lost::Busy(_)) => return Err(busy.into()),
                    removed => drop(removed),
                }
            }
            started.close();
        }
        RUNS.remove(run)?;
        Ok(())
    })
}

/// The processors that this process may run on.
#[jni_mangle("dev.tamis.Native")]
pub fn topology<'l>(env: EnvUnowned<'l>, _: JClass<'l>) -> JString<'l> {
    enter(env, |env| Ok(env.new_string(places::topology())?))
}

/// The configuration that a file of the study's framework stands for.
#[jni_mangle("dev.tamis.Native")]
pub fn properties<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    file: JString<'l>,
    text: JString<'l>,
) -> JString<'l> {
    enter(env, |env| {
        let (file, text) = (file.try_to_string(env)?, text.try_to_string(env)?);
        Ok(env.new_string(properties::to_toml(&file, &text)?)?)
    })
}

/// Replays captures.
#[jni_mangle("dev.tamis.Native")]
pub fn replay<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    rules: JObjectArray<'l, JString<'l>>,
    captures: JObjectArray<'l, JString<'l>>,
    options: JString<'l>,
) -> JString<'l> {
    enter(env, |env| {
        let (rules, captures) = (strings(env, &rules)?, strings(env, &captures)?);
        let options = options.try_to_string(env)?;
        Ok(env.new_string(offline::replay(&rules, &captures, &options)?)?)
    })
}

/// Tells a packet's story.
#[jni_mangle("dev.tamis.Native")]
pub fn why<'l>(
    env: EnvUnowned<'l>,
    _: JClass<'l>,
    rules: JObjectArray<'l, JString<'l>>,
    capture: JString<'l>,
    number: jlong,
    options: JString<'l>,
) -> JString<'l> {
    enter(env, |env| {
        let rules = strings(env, &rules)?;
        let capture = if capture.is_null() { None } else { Some(capture.try_to_string(env)?) };
        let options = options.try_to_string(env)?;
        Ok(env.new_string(offline::why(&rules, capture.as_deref(), number, &options)?)?)
    })
}

fn strings(
    env: &mut Env<'_>,
    array: &JObjectArray<'_, JString<'_>>,
) -> Result<Vec<String>, Thrown> {
    let count = array.len(env)?;
    (0..count).map(|at| Ok(array.get_element(env, at)?.try_to_string(env)?)).collect()
}
