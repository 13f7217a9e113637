//go:build !linux

package redistest

import "syscall"

// attributes are none here: a server outlives a test process that is killed.
func attributes() *syscall.SysProcAttr { return nil }
