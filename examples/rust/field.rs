//! Compresses numbers within an error bound and decompresses them, through arrcomp's C library, without crates.
//!
//!     rustc examples/rust/field.rs -L PREFIX/lib -C link-arg=-Wl,-rpath,PREFIX/lib && ./field

use std::ffi::{c_char, c_int, c_void, CStr, CString};

#[repr(C)]
struct Layout {
    dtype: c_int,
    dimensions: c_int,
    shape: *const u64,
}

#[link(name = "arrcomp")]
extern "C" {
    fn arrcomp_error_message() -> *const c_char;
    fn arrcomp_compress_bound(bytes: *mut u64, layout: *const Layout, configuration: *const c_char) -> c_int;
    fn arrcomp_compress(
        stream: *mut c_void, capacity: u64, bytes: *mut u64, array: *const c_void, layout: *const Layout,
        configuration: *const c_char, seed: u64, threads: c_int,
    ) -> c_int;
    fn arrcomp_decompress(array: *mut c_void, capacity: u64, stream: *const c_void, bytes: u64, threads: c_int) -> c_int;
}

const FLOAT64: c_int = 13; // ARRCOMP_FLOAT64

fn checked(status: c_int) -> Result<(), String> {
    if status == 0 {
        return Ok(());
    }
    Err(unsafe { CStr::from_ptr(arrcomp_error_message()) }.to_string_lossy().into_owned())
}

fn compress(x: &[f64], configuration: &str) -> Result<Vec<u8>, String> {
    let shape = [x.len() as u64];
    let layout = Layout { dtype: FLOAT64, dimensions: 1, shape: shape.as_ptr() };
    let text = CString::new(configuration).map_err(|error| error.to_string())?;
    let mut bytes = 0;
    checked(unsafe { arrcomp_compress_bound(&mut bytes, &layout, text.as_ptr()) })?;
    let mut stream = vec![0u8; bytes as usize];
    checked(unsafe {
        let (to, from) = (stream.as_mut_ptr().cast(), x.as_ptr().cast());
        arrcomp_compress(to, stream.len() as u64, &mut bytes, from, &layout, text.as_ptr(), 0, 0)
    })?;
    stream.truncate(bytes as usize);
    Ok(stream)
}

/// The numbers of a stream that has as many of them as `x`.
fn decompress(stream: &[u8], x: &mut [f64]) -> Result<(), String> {
    let bytes = std::mem::size_of_val(x) as u64;
    checked(unsafe {
        arrcomp_decompress(x.as_mut_ptr().cast(), bytes, stream.as_ptr().cast(), stream.len() as u64, 0)
    })
}

fn main() -> Result<(), String> {
    let x: Vec<f64> = (0..100_000).map(|i| (0.001 * i as f64).sin()).collect();
    let stream = compress(&x, r#"{"codec":"error-bounded","abs":0.001}"#)?;
    let mut y = vec![0.0; x.len()];
    decompress(&stream, &mut y)?;
    let largest = x.iter().zip(&y).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    println!("{} bytes in {}, largest error {:.6}", 8 * x.len(), stream.len(), largest);
    let refused = compress(&x, r#"{"codec":"error-bounded","abs":-1}"#).unwrap_err();
    println!("{refused}");
    Ok(())
}
