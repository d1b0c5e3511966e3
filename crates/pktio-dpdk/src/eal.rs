//! [`Eal`]: DPDK's environment abstraction layer, which a process starts once.
//!
//! Contract: it runs until the last of its handles is gone, and ports, frames and registered threads have one each: so
//! no memory of its is unmapped that somebody uses. What it says goes to standard error.
//!
//! Threads: one that DPDK does not know has no cache of mbufs, and takes turns with all others for each. A port makes
//! the thread that drives it known ([`Eal::register_thread`]), until that ends.

use std::cell::RefCell;
use std::ffi::{CString, c_int};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::config::EalError;
use crate::mbuf::MbufPool;
use crate::sys;

/// Whether this process has tried: after a failure there is no second try, as DPDK may be half started.
static IS_STARTED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// That this thread is known to the EAL.
    static KNOWN: RefCell<Option<KnownThread>> = const { RefCell::new(None) };
}

/// The EAL of this process.
#[derive(Clone, Debug)]
pub struct Eal {
    started: Arc<Started>,
}

#[derive(Debug)]
struct Started {
    /// One for each NUMA node that a device is at, while somebody uses it.
    pools: Mutex<Vec<(c_int, Weak<MbufPool>)>>,
}

impl Eal {
    /// Starts it, under the name of a program and with the EAL's own arguments (`--no-pci`, `--vdev=net_null0`, …). The
    /// calling thread keeps the processors that it may run on.
    ///
    /// # Errors
    /// It was started before, or does not start.
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
        Ok(Self { started: Arc::new(Started { pools: Mutex::default() }) })
    }

    /// Names of its devices.
    #[must_use]
    pub fn devices(&self) -> Vec<String> {
        sys::devices().into_iter().map(|(name, _)| name).collect()
    }

    /// The memory of frames at a NUMA node. The first to ask decides how many mbufs a thread keeps.
    pub(crate) fn pool(&self, socket: c_int, cache: usize) -> io::Result<Arc<MbufPool>> {
        let mut pools = self.started.pools.lock().unwrap_or_else(PoisonError::into_inner);
        pools.retain(|(_, pool)| pool.strong_count() > 0);
        let known = pools.iter().find(|(at, _)| *at == socket);
        if let Some(pool) = known.and_then(|(_, pool)| pool.upgrade()) {
            return Ok(pool);
        }
        let pool = Arc::new(MbufPool::new(self.clone(), socket, cache)?);
        pools.push((socket, Arc::downgrade(&pool)));
        Ok(pool)
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
