//! [`Eal`]: DPDK's environment abstraction layer, which a process starts once.
//!
//! Contract: it runs until its last handle is dropped, and ports, frames and registered threads have one each: so no
//! memory of its is unmapped that somebody uses. What it says goes to standard error.
//!
//! Threads: a thread that DPDK does not know has no cache of mbufs, and takes turns with all others for each. A port
//! registers the thread that drives it ([`Eal::register_thread`]), until that ends.

use std::cell::RefCell;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::config::EalError;
use crate::sys;

/// Whether this process has tried: after a failure there is no second try, as DPDK may be half started.
static IS_STARTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The registration of this thread with the EAL.
    static KNOWN: RefCell<Option<KnownThread>> = const { RefCell::new(None) };
}

/// The EAL of this process.
#[derive(Clone, Debug)]
pub struct Eal {
    _started: Arc<Started>,
}

/// The running EAL.
#[derive(Debug)]
struct Started;

impl Eal {
    /// Starts it, under the name of a program and with the EAL's own arguments (`--no-pci`, `--vdev=net_null0`, …). The
    /// calling thread keeps the processors that it may run on.
    ///
    /// # Errors
    /// The EAL was started before, or does not start.
    pub fn init(program: &str, arguments: &[String]) -> Result<Self, EalError> {
        let argument = |argument: &str| {
            CString::new(argument).map_err(|_| EalError::Argument(argument.to_owned()))
        };
        let all = std::iter::once(program).chain(arguments.iter().map(String::as_str));
        let all = all.map(argument).collect::<Result<_, _>>()?;
        if IS_STARTED.swap(true, Ordering::Relaxed) {
            return Err(EalError::Again);
        }
        sys::init(all).map_err(EalError::Refused)?;
        Ok(Self { _started: Arc::new(Started) })
    }

    /// Names of its devices.
    #[must_use]
    pub fn devices(&self) -> Vec<String> {
        sys::devices().into_iter().map(|(name, _)| name).collect()
    }

    /// Makes the calling thread known, until it ends. One that cannot be works all the same, without a cache.
    pub(crate) fn register_thread(&self) {
        KNOWN.with_borrow_mut(|known| {
            if known.is_none() && sys::register_thread() {
                *known = Some(KnownThread { _eal: self.clone() });
            }
        });
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        sys::cleanup();
    }
}

/// Keeps the EAL until its thread has been forgotten.
struct KnownThread {
    _eal: Eal,
}

impl Drop for KnownThread {
    fn drop(&mut self) {
        sys::unregister_thread();
    }
}
