//! The open batch: frames in pooled chunks of memory, ready for one vectored write.
