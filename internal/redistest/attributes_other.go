//go:build !linux

package redistest

import "syscall"

// attributes returns nil. On this system, a server continues to run if the test process is killed.
func attributes() *syscall.SysProcAttr { return nil }
