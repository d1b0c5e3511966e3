//! The same as plain C functions, for `java.lang.foreign` and JNA.
//!
//! Contract: handles are those of `dev.tamis.bench.Native`, used by its one thread.

use crate::frames::Frames;
use crate::lend;
use crate::pool::Pool;
use crate::realistic::frames;
use crate::study::pool;

/// The next struct.
#[unsafe(no_mangle)]
extern "C" fn tamis_bench_pointer(handle: i64) -> *mut u8 {
    pool!(handle).take().as_mut_ptr()
}

/// The next burst of structs.
#[unsafe(no_mangle)]
extern "C" fn tamis_bench_poll(handle: i64, most: i32) -> i32 {
    pool!(handle).poll(most as usize) as i32
}

/// The next burst of frames.
#[unsafe(no_mangle)]
extern "C" fn tamis_bench_frames_poll(handle: i64, most: i32) -> i32 {
    frames!(handle).poll(most as usize) as i32
}
