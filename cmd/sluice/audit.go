package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/audit"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/cmd/sluice/config"
)

// auditing is the audit log of a gateway, if it has one.
type auditing struct {
	to  *string // the setting
	out io.Writer
	log *audit.Log
	// reopen has the signals that ask for a new file.
	reopen chan os.Signal
}

// open takes up the audit log, before anything is served.
func (a *auditing) open(ctx context.Context, changes *hub.Hub, kinds *catalogues, log *zap.Logger) (err error) {
	if *a.to == "" {
		return nil
	}
	file := &audit.File{Path: *a.to}
	if *a.to == config.AuditStdout {
		file = &audit.File{Out: a.out}
	}
	a.reopen = make(chan os.Signal, 1)
	signal.Notify(a.reopen, reopenSignals()...) // from now on, since the file may be renamed as soon as it is open
	a.log, err = audit.Open(ctx, audit.Config{Hub: changes, Sensitive: kinds.sensitive, To: file, Logger: log})
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return nil
}

// Run writes changes until ctx ends, and begins a new file at each signal that asks for it.
func (a *auditing) Run(ctx context.Context) error {
	if a.log == nil {
		<-ctx.Done()
		return nil
	}
	defer signal.Stop(a.reopen)
	done := make(chan error, 1)
	go func() { done <- a.log.Run(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-a.reopen:
			a.log.Reopen(ctx)
		}
	}
}

func (a *auditing) refuse(ctx context.Context, refused *failure.Error) {
	if a.log != nil {
		a.log.Refuse(ctx, refused)
	}
}

func (a *auditing) reveal(ctx context.Context, key backend.Key) error {
	if a.log == nil {
		return nil
	}
	return a.log.Reveal(ctx, key)
}

func (a *auditing) replace(ctx context.Context, hash string) {
	if a.log != nil {
		a.log.Replace(ctx, hash)
	}
}

// sensitive reports whether the paths of a kind are not for logs: it is sensitive, or the catalogue that is served does
// not have it.
func (c *catalogues) sensitive(kind string) bool {
	k, err := c.current().Kind(kind)
	return err != nil || k.Sensitive
}
