// What PyTorch asks NVSHMEM before it uses it.

extern "C" {

void nvshmem_info_get_version(int* major, int* minor) {
  *major = 3;  // the interface of libnvshmem_host.so.3
  *minor = 0;
}

int nvshmemid_init_status() { return 0; }  // not initialised

}  // extern "C"
