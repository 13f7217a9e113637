//go:build !linux

package hugepage

import "context"

// Run waits until ctx ends: only Linux lets a process ask.
func Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
