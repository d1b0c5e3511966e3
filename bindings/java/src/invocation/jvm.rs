//! [`Jvm`]: the JVM of this process, from its start to its end.
//!
//! Contract: it has a thread of its own, as the JVM gives the thread that starts it a meaning, and none of tamis' has that.
//! Other threads attach to it for as long as they are in Java. To end it, all references to its objects have to be dropped.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use jni::errors::{self, StartJvmError};
use jni::objects::JString;
use jni::vm::{InitArgsBuilder, JavaVM};
use jni::{Env, jni_sig, jni_str};
use live::config::JavaSettings;

/// How long threads of the JVM's that are no daemons, and its shutdown hooks, may take at its end.
const PATIENCE: Duration = Duration::from_secs(2);

/// A JVM.
#[derive(Debug)]
pub(super) struct Jvm {
    pub(super) vm: JavaVM,
    /// Asks its thread to end it, which says so.
    end: Sender<Sender<()>>,
}

impl Jvm {
    /// Starts that of a library, with the class path and the options that are configured.
    ///
    /// # Errors
    /// It does not start: why.
    pub(super) fn start(library: &Path, java: &JavaSettings) -> Result<Self, String> {
        let (library, options) = (library.to_owned(), options(java));
        let (told, started) = mpsc::channel();
        let (end, asked) = mpsc::channel();
        let thread = thread::Builder::new().name("jvm".to_owned());
        let live = move || match created(library, &options) {
            Ok(vm) => {
                let _ = told.send(Ok(vm.clone()));
                drop(told);
                see_to_its_end(&vm, &asked);
            }
            Err(what) => drop(told.send(Err(what))),
        };
        thread.spawn(live).map_err(|error| format!("threads: {error}"))?;
        let vm = started.recv().map_err(|_| "the JVM's thread has panicked".to_owned())??;
        Ok(Self { vm, end })
    }

    /// Does something in Java by the calling thread, which is attached to it for that long.
    ///
    /// # Errors
    /// What Java has thrown, or what else went wrong.
    pub(super) fn inside<T>(
        &self,
        what: impl FnOnce(&mut Env<'_>) -> errors::Result<T>,
    ) -> Result<T, String> {
        let done = self.vm.attach_current_thread_for_scope(|env| {
            let done = what(env);
            Ok::<_, errors::Error>(done.map_err(|error| thrown(env, &error)))
        });
        done.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Ends it, as Java's own launcher does: after its threads that are no daemons, with its shutdown hooks. Whether it
    /// has ended by now.
    pub(super) fn end(self) -> bool {
        let (done, ended) = mpsc::channel();
        self.end.send(done).is_ok() && ended.recv_timeout(PATIENCE).is_ok()
    }
}

/// All options of the JVM. Ours come last, as the last one wins.
fn options(java: &JavaSettings) -> Vec<String> {
    let of_ours = [format!("-Djava.class.path={}", java.class_path()), "-Xrs".to_owned()];
    java.options.iter().cloned().chain(of_ours).collect()
}

fn created(library: PathBuf, options: &[String]) -> Result<JavaVM, String> {
    let builder =
        options.iter().fold(InitArgsBuilder::new(), |builder, option| builder.option(option));
    let args = builder.build().map_err(|error| format!("options of the JVM: {error}"))?;
    JavaVM::with_libjvm(args, || Ok(library)).map_err(|error| match error {
        StartJvmError::LoadError(file, error) => format!("{file} cannot be loaded: {error}"),
        StartJvmError::Create(error) => {
            format!("the JVM does not start with these options, and says why above: {error}")
        }
        other => other.to_string(),
    })
}

/// Waits until somebody asks for its end; where nobody does, it ends with the process.
fn see_to_its_end(vm: &JavaVM, asked: &Receiver<Sender<()>>) {
    let Ok(done) = asked.recv() else { return };
    if vm.detach_current_thread().is_err() {
        return;
    }
    // SAFETY: this thread was detached, and no Java is on its stack. All others of tamis' that were attached have ended or are
    // detached, and with them went what they knew of its objects: `Hosting::end` asks for this after `Upcalls::end`.
    #[expect(unsafe_code, reason = "nothing proves that nobody is in Java")]
    let ended = unsafe { vm.destroy() };
    if ended.is_ok() {
        let _ = done.send(());
    }
}

/// What Java has thrown, in its words, and throws no longer; or another error.
pub(super) fn thrown(env: &mut Env<'_>, error: &impl Display) -> String {
    let Some(exception) = env.exception_occurred() else { return error.to_string() };
    env.exception_clear();
    let is_ours = env.is_instance_of(&exception, jni_str!("dev/tamis/TamisException"));
    let said = match is_ours {
        Ok(true) => env.call_method(
            &exception,
            jni_str!("getMessage"),
            jni_sig!("()Ljava/lang/String;"),
            &[],
        ),
        _ => {
            env.call_method(&exception, jni_str!("toString"), jni_sig!("()Ljava/lang/String;"), &[])
        }
    };
    let text = said.and_then(|said| said.l()).and_then(|said| {
        let said = env.cast_local::<JString<'_>>(said)?;
        said.try_to_string(env)
    });
    env.exception_clear();
    text.unwrap_or_else(|_| error.to_string())
}
