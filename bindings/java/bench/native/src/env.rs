//! The functions of JNI that the techniques call, as a C program calls them: nothing is looked up or checked besides.
//!
//! Contract: an [`Env`] belongs to the native method that was given it. A pending exception is Java's to see, when the
//! method returns. Source: the JNI specification, chapter 4.
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "one call of JNI is two dereferences, a field of a union, and the call"
)]

use std::ffi::{CStr, c_void};

use jni_sys::{JNIEnv, jclass, jfieldID, jmethodID, jobject, jvalue};

/// What a native method may ask of the JVM.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Env(*mut JNIEnv);

// Each function below: the pointer is the one that the JVM gave the method which is running, so its table has these
// functions; names end with a zero byte; classes, members and objects are those that this library got from the JVM.
impl Env {
    pub(crate) fn class_of(self, object: jobject) -> jclass {
        // SAFETY: as above.
        unsafe { ((**self.0).v1_4.GetObjectClass)(self.0, object) }
    }

    pub(crate) fn find_class(self, name: &CStr) -> jclass {
        // SAFETY: as above.
        unsafe { ((**self.0).v1_4.FindClass)(self.0, name.as_ptr()) }
    }

    pub(crate) fn method(self, class: jclass, name: &CStr, signature: &CStr) -> jmethodID {
        let (name, signature) = (name.as_ptr(), signature.as_ptr());
        // SAFETY: as above.
        unsafe { ((**self.0).v1_4.GetMethodID)(self.0, class, name, signature) }
    }

    pub(crate) fn field(self, class: jclass, name: &CStr, signature: &CStr) -> jfieldID {
        let (name, signature) = (name.as_ptr(), signature.as_ptr());
        // SAFETY: as above.
        unsafe { ((**self.0).v1_4.GetFieldID)(self.0, class, name, signature) }
    }

    pub(crate) fn keep(self, object: jobject) -> jobject {
        // SAFETY: as above.
        unsafe { ((**self.0).v1_4.NewGlobalRef)(self.0, object) }
    }

    pub(crate) fn make(self, class: jclass, constructor: jmethodID) -> jobject {
        // SAFETY: as above; the constructor takes nothing.
        unsafe { ((**self.0).v1_4.NewObjectA)(self.0, class, constructor, std::ptr::null()) }
    }

    pub(crate) fn call(self, object: jobject, method: jmethodID, argument: jvalue) {
        // SAFETY: as above; the method takes this one argument and returns nothing.
        unsafe { ((**self.0).v1_4.CallVoidMethodA)(self.0, object, method, &raw const argument) }
    }

    pub(crate) fn call_int(self, object: jobject, method: jmethodID) -> i32 {
        // SAFETY: as above; the method takes nothing and returns an int.
        unsafe { ((**self.0).v1_4.CallIntMethodA)(self.0, object, method, std::ptr::null()) }
    }

    pub(crate) fn call_long(self, object: jobject, method: jmethodID) -> i64 {
        // SAFETY: as above; the method takes nothing and returns a long.
        unsafe { ((**self.0).v1_4.CallLongMethodA)(self.0, object, method, std::ptr::null()) }
    }

    pub(crate) fn int(self, object: jobject, field: jfieldID) -> i32 {
        // SAFETY: as above; the field is an int.
        unsafe { ((**self.0).v1_4.GetIntField)(self.0, object, field) }
    }

    pub(crate) fn long(self, object: jobject, field: jfieldID) -> i64 {
        // SAFETY: as above; the field is a long.
        unsafe { ((**self.0).v1_4.GetLongField)(self.0, object, field) }
    }

    pub(crate) fn put_int(self, object: jobject, field: jfieldID, value: i32) {
        // SAFETY: as above; the field is an int.
        unsafe { ((**self.0).v1_4.SetIntField)(self.0, object, field, value) }
    }

    pub(crate) fn put_long(self, object: jobject, field: jfieldID, value: i64) {
        // SAFETY: as above; the field is a long.
        unsafe { ((**self.0).v1_4.SetLongField)(self.0, object, field, value) }
    }

    /// The bytes of a direct buffer.
    pub(crate) fn buffer_address(self, buffer: jobject) -> *mut u8 {
        // SAFETY: as above.
        unsafe { ((**self.0).v1_4.GetDirectBufferAddress)(self.0, buffer) }.cast()
    }

    /// A direct buffer over memory that outlives it.
    pub(crate) fn buffer(self, (address, length): (*mut u8, usize)) -> jobject {
        let (address, length) = (address.cast::<c_void>(), length as i64);
        // SAFETY: as above.
        unsafe { ((**self.0).v1_4.NewDirectByteBuffer)(self.0, address, length) }
    }

    /// Copies bytes into an array from its beginning.
    pub(crate) fn put_array(self, array: jobject, bytes: &[u8]) {
        let (from, length) = (bytes.as_ptr().cast::<i8>(), bytes.len() as i32);
        // SAFETY: as above; a range beyond the array is an exception.
        unsafe { ((**self.0).v1_4.SetByteArrayRegion)(self.0, array, 0, length, from) }
    }

    /// Copies an array's first bytes.
    pub(crate) fn get_array(self, array: jobject, bytes: &mut [u8]) {
        let (to, length) = (bytes.as_mut_ptr().cast::<i8>(), bytes.len() as i32);
        // SAFETY: as above; a range beyond the array is an exception.
        unsafe { ((**self.0).v1_4.GetByteArrayRegion)(self.0, array, 0, length, to) }
    }
}
