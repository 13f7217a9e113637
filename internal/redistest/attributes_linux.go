package redistest

import "syscall"

// attributes returns the attributes of server processes. The kernel kills a server when the test process ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
