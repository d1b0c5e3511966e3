//! The way in from Java, and out: [`enter`] runs the body of a native function; what it cannot do is a `TamisException`.
//!
//! Contract: a panic becomes an exception, too. An exception that Java has thrown already stays as it is.

use std::any::Any;

use jni::errors::{self, ErrorPolicy};
use jni::strings::JNIString;
use jni::{Env, EnvUnowned, jni_str};
use replay::without_numbers;

/// Why a native function failed: the message of its exception.
#[derive(Debug, PartialEq, Eq)]
pub struct Thrown(pub String);

/// Takes the words that the command line has for the error.
impl<E: std::error::Error> From<E> for Thrown {
    fn from(error: E) -> Self {
        Self(without_numbers(&error.to_string()))
    }
}

/// Runs the body of a native function: what it returns, or the default and an exception.
pub(crate) fn enter<'local, T: Default>(
    mut env: EnvUnowned<'local>,
    body: impl FnOnce(&mut Env<'local>) -> Result<T, Thrown>,
) -> T {
    env.with_env(body).resolve::<Throws>()
}

/// Throws what went wrong.
struct Throws;

impl<T: Default> ErrorPolicy<T, Thrown> for Throws {
    type Captures<'local: 'native, 'native> = ();

    fn on_error<'local: 'native, 'native>(
        env: &mut Env<'local>,
        (): &mut Self::Captures<'local, 'native>,
        Thrown(message): Thrown,
    ) -> errors::Result<T> {
        throw(env, &message)
    }

    fn on_panic<'local: 'native, 'native>(
        env: &mut Env<'local>,
        (): &mut Self::Captures<'local, 'native>,
        payload: Box<dyn Any + Send>,
    ) -> errors::Result<T> {
        let words = payload.downcast_ref::<String>().map(String::as_str);
        let words = words.or_else(|| payload.downcast_ref::<&str>().copied());
        throw(env, &format!("tamis has panicked: {}", words.unwrap_or("it does not say why")))
    }
}

fn throw<T: Default>(env: &mut Env<'_>, message: &str) -> errors::Result<T> {
    if !env.exception_check() {
        let thrown = env.throw_new(jni_str!("dev/tamis/TamisException"), JNIString::from(message));
        // To have thrown is an error to the crate. Where the class is not there, Java throws that.
        if let Err(error) = thrown
            && !env.exception_check()
        {
            return Err(error);
        }
    }
    Ok(T::default())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use jni::objects::JString;
    use jni::vm::{InitArgsBuilder, JavaVM};

    use super::*;

    /// A JVM that knows the exception, from this folder; `None`, and why on standard error, where there is no JDK.
    fn jvm(classes: &Path) -> Option<JavaVM> {
        let source = "src/main/java/dev/tamis/TamisException.java";
        let compiled = Command::new("javac").arg("-d").arg(classes).arg(source).status();
        let path = format!("-Djava.class.path={}", classes.display());
        let args = InitArgsBuilder::new().option(&*path).option("-Xrs").build().unwrap();
        let made = match compiled {
            Ok(status) if status.success() => JavaVM::new(args).map_err(|error| error.to_string()),
            _ => Err("javac cannot be run".to_owned()),
        };
        made.inspect_err(|why| eprintln!("SKIPPED: exceptions that natives throw: {why}")).ok()
    }

    /// What a native function with this body returns, and the message of the exception that it leaves.
    fn called(env: &mut Env<'_>, body: impl FnOnce() -> Result<i32, Thrown>) -> (i32, String) {
        // SAFETY: it is the pointer of this thread, which is attached for as long as `env` is borrowed.
        #[expect(unsafe_code, reason = "only the JVM makes one otherwise")]
        let native = unsafe { EnvUnowned::from_raw(env.get_raw()) };
        let returned = enter(native, |_| body());
        let Some(exception) = env.exception_occurred() else { return (returned, String::new()) };
        env.exception_clear();
        let class = jni_str!("dev/tamis/TamisException");
        assert!(env.is_instance_of(&exception, class).unwrap());
        let message: JString<'_> = exception.get_message(env).unwrap();
        (returned, message.try_to_string(env).unwrap())
    }

    #[test]
    fn errors_and_panics_are_exceptions_with_their_words() {
        let classes = tempfile::tempdir().unwrap();
        let Some(jvm) = jvm(classes.path()) else { return };
        let tested = jvm.attach_current_thread(|env| {
            assert_eq!(called(env, || Ok(7)), (7, String::new()));
            let refused = || Err(Thrown("rules.v4:3:1: é \u{1F980}".to_owned()));
            assert_eq!(called(env, refused), (0, "rules.v4:3:1: é \u{1F980}".to_owned()));
            let lost = || Err(std::io::Error::from_raw_os_error(2).into());
            assert_eq!(called(env, lost), (0, "No such file or directory".to_owned()));
            let said = "tamis has panicked: on purpose";
            assert_eq!(called(env, || panic!("on purpose")), (0, said.to_owned()));
            assert_eq!(called(env, || panic!("on {}", "purpose")), (0, said.to_owned()));
            let silent = || std::panic::panic_any(7);
            let said = "tamis has panicked: it does not say why";
            assert_eq!(called(env, silent), (0, said.to_owned()));
            Ok::<(), errors::Error>(())
        });
        tested.unwrap();
    }
}
