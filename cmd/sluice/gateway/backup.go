package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/audit"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/state"
)

// BackupPath is the path of backups of the embedded store, on the network and on the admin socket.
const BackupPath = "/backup"

// backupStore is a store that can be copied as a whole. The embedded store can.
type backupStore interface {
	Backup(ctx context.Context) (*bolt.Backup, error)
}

// backups serves requests for backups.
type backups struct {
	on  shared
	log *zap.Logger
}

// handler returns a handler that sends backups. If plain is false, it refuses a backup that would have secrets without
// encryption.
func (b backups) handler(plain bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		store, embedded := b.on.store.(backupStore)
		secrets := state.Sealed
		if b.on.keys.ID() == "" {
			secrets = state.Plain
		}
		switch {
		case !embedded:
			refuseExport(w, r, http.StatusConflict, failure.CodeBadUserInput, "the gateway stores on Redis, which has copies of its own: its RDB file and its AOF; sluice export writes everything to a file")
			return
		case secrets == state.Plain && !plain:
			refuseExport(w, r, http.StatusConflict, failure.CodeBadUserInput, "the gateway has no key that encrypts secrets, so a backup may show them: give it encryption-keys-file, or take the backup over the admin socket")
			return
		}
		if b.on.audit != nil {
			if err := b.on.audit.Export(r.Context(), audit.FormBackup, string(secrets)); err != nil {
				refuseExport(w, r, http.StatusServiceUnavailable, failure.CodeUnavailable, "the audit log cannot be written, so no backup is made")
				return
			}
		}
		b.serve(w, r, store)
	})
}

// serve sends a backup. If it fails after the answer has begun, the answer is shorter than announced.
func (b backups) serve(w http.ResponseWriter, r *http.Request, store backupStore) {
	out, ended := newExportWriter(w, r, "application/octet-stream")
	defer ended()
	made, err := store.Backup(r.Context())
	switch {
	case errors.Is(err, bolt.ErrBackup):
		refuseExport(w, r, http.StatusServiceUnavailable, failure.CodeUnavailable, "another backup is under way; try again later")
		return
	case errors.Is(err, backend.ErrNoSpace):
		refuseExport(w, r, http.StatusServiceUnavailable, failure.CodeUnavailable, "the disk of the store has no space for a copy beside it; the gateway's log says how much is needed")
		b.log.Error("no backup was made", zap.Error(err))
		return
	case errors.Is(err, context.Canceled):
		refuseExport(w, r, http.StatusServiceUnavailable, failure.CodeUnavailable, "the gateway stops")
		return
	case err != nil:
		refuseExport(w, r, http.StatusServiceUnavailable, failure.CodeUnavailable, "no backup can be made now; the gateway's log says why")
		b.log.Error("no backup was made", zap.Error(err))
		return
	}
	defer func() { _ = made.Close() }()
	w.Header().Set("Content-Length", strconv.FormatInt(made.Size, 10))
	if _, err := io.Copy(out, made); err != nil {
		if r.Context().Err() == nil && !out.failed {
			b.log.Error("a backup broke off", zap.Error(err))
		}
		panic(http.ErrAbortHandler)
	}
	b.on.measures.copiedNow(copyBackup)
	b.log.Info("the store was backed up", zap.Int64("bytes", made.Size))
}
