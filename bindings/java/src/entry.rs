//! The way in from Java, and out: [`enter`] runs the body of a native function; what it cannot do is a `TamisException`.
//!
//! Contract: a panic becomes an exception, too. An exception that Java has thrown already stays the one that is thrown.

use std::any::Any;

use jni::errors::{self, ErrorPolicy};
use jni::strings::JNIString;
use jni::{Env, EnvUnowned, jni_str};
use replay::without_numbers;

/// Why a native function failed: the message of its exception.
#[derive(Debug, PartialEq, Eq)]
pub struct Thrown(pub String);

/// In the words that the command line has for it.
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
