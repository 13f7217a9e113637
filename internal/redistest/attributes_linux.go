package redistest

import "syscall"

// attributes let no server outlive the test process, however that ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
