package gateway

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/audit"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/cmd/sluice/config"
)

// auditing is the audit log of a gateway.
type auditing struct {
	*audit.Log
	// reopen receives the signals after which a new file is begun.
	reopen chan os.Signal
}

// openAudit opens the audit log; nil if there is none. sensitive reports whether the changed paths of a kind must not
// be logged.
func (s *Gateway) openAudit(
	ctx context.Context,
	changes *hub.Hub,
	sensitive func(kind string) bool,
	log *zap.Logger,
) (*auditing, error) {
	if s.Audit == "" {
		return nil, nil
	}
	file := &audit.File{
		Path:     s.Audit,
		Size:     s.Rotation.MaxSize,
		MaxAge:   s.Rotation.MaxAge,
		MaxFiles: s.Rotation.MaxFiles,
		Compress: s.Rotation.Compress,
	}
	if s.Audit == config.AuditStdout {
		file = &audit.File{Out: s.out}
	}
	a := &auditing{reopen: make(chan os.Signal, 1)}
	signal.Notify(a.reopen, reopenSignals()...) // from now on, since the file may be renamed as soon as it is open
	var err error
	if a.Log, err = audit.Open(ctx, audit.Config{
		Hub:       changes,
		Sensitive: sensitive,
		To:        file,
		Logger:    log,
	}); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	return a, nil
}

// Run writes changes to the audit log until ctx ends. After each signal it begins a new file.
func (a *auditing) Run(ctx context.Context) error {
	if a == nil {
		<-ctx.Done()
		return nil
	}
	defer signal.Stop(a.reopen)
	done := make(chan error, 1)
	go func() { done <- a.Log.Run(ctx) }()
	for {
		select {
		case err := <-done:
			return err
		case <-a.reopen:
			a.Reopen(ctx)
		}
	}
}

// sensitive reports whether the changed paths of a kind must not be logged, because the kind is sensitive or not in the
// served catalogue.
func (c *catalogues) sensitive(kind string) bool {
	k, err := c.current().Kind(kind)
	return err != nil || k.Sensitive
}
