// Package audit writes the audit log. It has a line of JSON for each change of the store, read from the store's log,
// and one for each refused request, each reveal of sensitive values, and some other events. It never has values of
// resources.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/span"
	"github.com/sluicegw/sluice/internal/wait"
)

// The events of lines that are not about a change of a resource.
const (
	// Opened is the first line of a file. The following lines are about changes after its position.
	Opened = "OPENED"
	// Gap: changes before its position are missing, because the store's log did not have them any more.
	Gap = "GAP"
	// Refused: a request was refused because its caller is unknown, or may not make it.
	Refused = "REFUSED"
	// Revealed: sensitive values are about to be shown.
	Revealed = "REVEALED"
	// Exported: everything in the store is about to be exported, see Line.Form.
	Exported = "EXPORTED"
	// Controlled: a kind was given to a controller. Released: it was taken back from the controller.
	Controlled = "KIND_CONTROLLED"
	Released   = "KIND_RELEASED"
	// HistoryLost: the store has lost changes that the gateway had seen.
	HistoryLost = "HISTORY_LOST"
	// Replaced: another catalogue is served from now on.
	Replaced = "CATALOGUE_REPLACED"
)

// Line is a line of the audit log.
type Line struct {
	// Time is the time of the change by the store's clock, or the time of the request on the gateway.
	Time time.Time `json:"time"`
	// Event is ADDED, MODIFIED or DELETED, or one of the events of this package.
	Event string `json:"event"`
	// Code is the code of a refused request, and Verb the verb that its caller lacks.
	Code      string `json:"code,omitempty"`
	Verb      string `json:"verb,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
	Revision  string `json:"revision,omitempty"`
	// By is the name of the caller, Address its address, and RequestID the id of its request. TraceID is the id of the
	// request's trace, if it differs from RequestID. A line about a change has it only if the request was traced.
	By        string `json:"by,omitempty"`
	Address   string `json:"address,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	TraceID   string `json:"traceId,omitempty"`
	// Paths are the changed paths of a resource, in stored names. There are none for a sensitive kind.
	Paths []string `json:"paths,omitempty"`
	// Form is the form of an export: [FormExport] or [FormBackup].
	Form string `json:"form,omitempty"`
	// Secrets is how an export holds secrets: sealed, plain or none.
	Secrets string `json:"secrets,omitempty"`
	// Catalogue is the hash of the new catalogue, for Replaced.
	Catalogue string `json:"catalogue,omitempty"`
	// EpochBefore is the epoch of the lost history, and Epoch the epoch of the history that replaced it. Lost is the
	// number of missing changes, 0 if unknown.
	EpochBefore uint64 `json:"epochBefore,omitempty"`
	Epoch       uint64 `json:"epoch,omitempty"`
	Lost        uint64 `json:"lost,omitempty"`
	// Position is a position in the store's log. All changes up to it have been written before the next line.
	Position string `json:"position"`
}

// Config configures a [Log]. All fields are required.
type Config struct {
	Hub *hub.Hub
	// Sensitive reports whether the changed paths of a kind must not be written.
	Sensitive func(kind string) bool
	// To is the file that gets the lines.
	To     *File
	Logger *zap.Logger
}

// Log is the audit log of one gateway. It is safe for concurrent use.
type Log struct {
	cfg Config

	turn chan struct{} // has an element while the file, at and lineTime are used
	// at is the position of the last line.
	at backend.Position
	// lineTime is the time in the last line, or the time when the log was opened if there was no line.
	lineTime time.Time
	// written is a copy of at, which Behind can read without a lock.
	written atomic.Pointer[backend.Position]
	// rotated has an element when renamed files must be removed or compressed.
	rotated chan struct{}
	// failures has the number of failures of each kind.
	failures [failureKinds]atomic.Uint64
}

// Failure is something that goes wrong with an audit log.
type Failure int

// The kinds of failures. After one of the first three alone, no line is missing.
const (
	// FailedWrite: lines could not be written. Lines about changes are written later.
	FailedWrite Failure = iota
	// FailedRename: the file could not be renamed, or no new one could be made.
	FailedRename
	// FailedTidy: renamed files could not be removed or compressed.
	FailedTidy
	// MissingLine: a line about a request is missing.
	MissingLine
	// MissingChanges: a [Gap] was written.
	MissingChanges
	// RemovedFile: somebody has removed the file.
	RemovedFile
	failureKinds
)

// String returns the name of the failure in metrics.
func (f Failure) String() string {
	return [failureKinds]string{"write", "rename", "tidy", "line", "gap", "removed"}[f]
}

// Failures returns all kinds of failures.
func Failures() (all []Failure) {
	for f := range failureKinds {
		all = append(all, f)
	}
	return all
}

// Failed returns how often a failure of the kind f has occurred.
func (l *Log) Failed(f Failure) uint64 { return l.failures[f].Load() }

func (l *Log) failed(f Failure) { l.failures[f].Add(1) }

// Open opens the file and continues the log at the position of its last line, or at the present position if there is
// no line. [Log.Run] must then be called to write changes.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	l := &Log{cfg: cfg, turn: make(chan struct{}, 1), rotated: make(chan struct{}, 1)}
	last, err := cfg.To.open()
	if err != nil {
		return nil, err
	}
	l.at = last.at
	l.lineTime = last.time
	if l.at.IsZero() {
		l.lineTime = time.Now().UTC()
		if l.at, err = l.now(ctx); err != nil {
			l.cfg.To.close()
			return nil, err
		}
	}
	l.setWritten(l.at)
	if err := l.note(ctx); err != nil {
		l.cfg.Logger.Error("the audit log cannot be written", zap.Error(err))
	}
	return l, nil
}

func (l *Log) setWritten(at backend.Position) { l.written.Store(&at) }

// Behind returns the number of changes known to the gateway for which no line was written yet.
func (l *Log) Behind() (changes uint64) {
	at, head := l.written.Load(), l.cfg.Hub.Position()
	for i := range head.Shards() {
		was, now := at.Shard(i), head.Shard(i)
		switch {
		case now.Compare(was) <= 0:
		case now.Epoch == was.Epoch:
			changes += now.Seq - was.Seq
		default: // the numbers of an epoch begin at 1
			changes += now.Seq
		}
	}
	return changes
}

// now returns the present position, at which a new watch of the hub begins.
func (l *Log) now(ctx context.Context) (backend.Position, error) {
	w, err := l.cfg.Hub.Watch(ctx, hub.Watch{})
	if err != nil {
		return backend.Position{}, err
	}
	defer w.Close()
	return w.Position(), nil
}

// patience is the longest time that a request waits for its line to be written. The reader of a pipe may hang, and so
// may a file system.
const patience = 2 * time.Second

var errStuck = errors.New("the target of the audit log takes no lines")

// alone calls f, which uses the file. Only one such function runs at a time. If ctx ends first, alone returns while f
// continues. Later calls wait until f has returned.
func (l *Log) alone(ctx context.Context, f func() error) error {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return errStuck
	}
	done := make(chan error, 1)
	go func() {
		defer func() { <-l.turn }()
		done <- f()
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errStuck
	}
}

// The shortest and the longest pause after a watch has ended, or after the file could not be written.
const (
	minPause = 200 * time.Millisecond
	maxPause = 2 * time.Second
)

// Run writes a line for each change until ctx ends, and then returns nil.
func (l *Log) Run(ctx context.Context) error {
	defer l.close(ctx)
	tidied := make(chan struct{})
	go func() {
		defer close(tidied)
		l.tidy(ctx)
	}()
	defer func() {
		select {
		case <-tidied:
		case <-time.After(patience): // a file system hangs
		}
	}()
	backoff := wait.Backoff{Least: minPause, Most: maxPause}
	for {
		begin := time.Now()
		err := l.follow(ctx)
		if time.Since(begin) > maxPause {
			backoff.Reset()
		}
		if errors.Is(err, backend.ErrPositionExpired) {
			err = l.skip(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !errors.Is(err, backend.ErrLagged) {
			l.cfg.Logger.Error("the audit log is behind", zap.Error(err))
		}
		if !backoff.Wait(ctx) {
			return nil
		}
	}
}

// tidyInterval is the time between two checks for files that are older than MaxAge.
const tidyInterval = time.Hour

// tidy removes and compresses renamed files until ctx ends, without delaying lines.
func (l *Log) tidy(ctx context.Context) {
	hourly := time.NewTicker(tidyInterval)
	defer hourly.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.rotated:
		case <-hourly.C:
		}
		if err := l.cfg.To.tidy(ctx); err != nil && ctx.Err() == nil {
			l.failed(FailedTidy)
			l.cfg.Logger.Error("renamed files of the audit log cannot be removed or compressed", zap.Error(err))
		}
	}
}

// close closes the file, unless a write to it hangs.
func (l *Log) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	_ = l.alone(ctx, func() error {
		l.cfg.To.close()
		return nil
	})
}

// follow writes changes until their watch ends.
func (l *Log) follow(ctx context.Context) error {
	w, err := l.cfg.Hub.Watch(ctx, hub.Watch{From: l.at})
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		d, err := w.Next(ctx)
		if err != nil {
			return err
		}
		lines := make([]Line, len(d.Events))
		for i := range d.Events {
			lines[i] = l.line(&d.Events[i])
		}
		if err := l.write(ctx, d.Position, lines...); err != nil {
			return err
		}
	}
}

// skip writes a Gap: the changes up to the present position are missing.
func (l *Log) skip(ctx context.Context) error {
	at, err := l.now(ctx)
	if err != nil {
		return err
	}
	var lastLine time.Time
	if err := l.alone(ctx, func() error {
		lastLine = l.lineTime
		return nil
	}); err != nil {
		return err
	}
	l.failed(MissingChanges)
	l.cfg.Logger.Error(
		"the audit log lacks changes: those after its last line were removed from the store's log before this gateway "+
			"wrote them, and a GAP line marks the place; look for them in the audit logs of other gateways; "+
			"retain-entries, retain-bytes and retain-age say how long the store keeps changes",
		zap.Time("lastLine", lastLine),
		zap.Stringer("after", l.at),
		zap.Stringer("until", at),
	)
	return l.write(ctx, at, Line{Time: time.Now().UTC(), Event: Gap, Position: at.String()})
}

func (l *Log) line(e *backend.Event) Line {
	by := access.ParseActor(e.Actor)
	out := Line{
		Time:      e.Time,
		Event:     e.Type.String(),
		Kind:      e.Resource.Kind,
		Namespace: e.Resource.Namespace,
		Name:      e.Resource.Name,
		UID:       e.Resource.UID,
		Revision:  e.Revision.String(),
		By:        by.Name,
		Address:   by.Address,
		RequestID: by.Request,
		TraceID:   span.OtherID(by.Trace, by.Request),
		Position:  e.Position.String(),
	}
	if !l.cfg.Sensitive(e.Resource.Kind) {
		// The field By names who made the change. metadata.owner is the gateway's bookkeeping about a resource that a
		// service owns.
		out.Paths = slices.DeleteFunc(kind.ChangedPaths(e), func(path string) bool {
			return path == "metadata.updatedBy" || path == "metadata.owner"
		})
	}
	return out
}

// write appends lines and records that all changes up to a position are written. Only Run calls it; therefore Run may
// read at without a lock.
func (l *Log) write(ctx context.Context, at backend.Position, lines ...Line) error {
	return l.alone(ctx, func() error {
		if len(lines) > 0 {
			if err := l.append(lines...); err != nil {
				return err
			}
		}
		l.at = at
		l.setWritten(at)
		return nil
	})
}

// append writes the lines with one call of write, after an Opened line if the file is empty. It must be called within
// [Log.alone].
func (l *Log) append(lines ...Line) error {
	to := l.cfg.To
	if err := to.rotate(); err != nil {
		l.failed(FailedRename)
		l.cfg.Logger.Error("the audit log stays in the file that it has", zap.Error(err))
	}
	if err := to.prepare(); err != nil {
		l.failed(FailedWrite)
		return err
	}
	if to.removed {
		to.removed = false
		l.failed(RemovedFile)
		l.cfg.Logger.Error("the file of the audit log was removed, and its lines with it; a new one begins")
	}
	if to.size == 0 {
		lines = append([]Line{{Time: time.Now().UTC(), Event: Opened, Position: l.at.String()}}, lines...)
	}
	var out []byte
	for _, one := range lines {
		text, err := json.Marshal(one)
		if err != nil {
			return err
		}
		out = append(append(out, text...), '\n')
	}
	if err := to.write(out); err != nil {
		l.failed(FailedWrite)
		if to.untidy && !to.crowded {
			to.crowded = true
			l.requestTidying()
		}
		return err
	}
	if len(lines) > 0 {
		l.lineTime = lines[len(lines)-1].Time
	}
	if to.untidy {
		to.untidy = false
		to.crowded = false
		l.requestTidying()
	}
	return nil
}

// requestTidying makes tidy remove and compress renamed files.
func (l *Log) requestTidying() {
	select {
	case l.rotated <- struct{}{}:
	default:
	}
}

// Refuse writes a Refused line for the caller of ctx.
func (l *Log) Refuse(ctx context.Context, refused *failure.Error) {
	_ = l.request(ctx, "a refusal is missing in the audit log", Line{
		Event:     Refused,
		Code:      string(refused.Code),
		Verb:      refused.Verb,
		Kind:      refused.Kind,
		Namespace: refused.Namespace,
		Name:      refused.Name,
	})
}

// Reveal writes a Revealed line. If it returns an error, the values must not be shown.
func (l *Log) Reveal(ctx context.Context, key backend.Key) error {
	return l.request(ctx, "sensitive values are not revealed: the audit log cannot be written", Line{Event: Revealed, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name})
}

// Forms of an export.
const (
	// FormExport: a file of sluice export.
	FormExport = "export"
	// FormBackup: a copy of the file of the embedded store.
	FormBackup = "backup"
)

// Export writes an Exported line for the caller of ctx. If it returns an error, nothing may be exported.
func (l *Log) Export(ctx context.Context, form, secrets string) error {
	line := Line{Event: Exported, Form: form, Secrets: secrets}
	return l.request(ctx, "nothing is exported: the audit log cannot be written", line)
}

// Control writes a Controlled or a Released line.
func (l *Log) Control(ctx context.Context, kind string, controlled bool) {
	event := Released
	if controlled {
		event = Controlled
	}
	_ = l.request(ctx, "a change of who controls a kind is missing in the audit log", Line{Event: event, Kind: kind})
}

// Replace writes a Replaced line.
func (l *Log) Replace(ctx context.Context, hash string) {
	_ = l.request(ctx, "a replaced catalogue is missing in the audit log", Line{Event: Replaced, Catalogue: hash})
}

// LoseHistory writes a HistoryLost line. lost is the number of missing changes, 0 if unknown.
func (l *Log) LoseHistory(ctx context.Context, before, now, lost uint64) {
	_ = l.request(
		ctx, "a lost history is missing in the audit log",
		Line{Event: HistoryLost, EpochBefore: before, Epoch: now, Lost: lost},
	)
}

// request writes a line about the request of ctx. If that fails, it logs the message missing.
func (l *Log) request(ctx context.Context, missing string, line Line) error {
	by := access.ActorFrom(ctx)
	line.Time = time.Now().UTC()
	line.By = by.Name
	line.Address = by.Address
	line.RequestID = by.Request
	line.TraceID = span.OtherID(access.CallerFrom(ctx).Trace, by.Request)
	err := l.note(ctx, line)
	if err != nil {
		l.failed(MissingLine)
		l.cfg.Logger.Error(missing, zap.Error(err))
	}
	return err
}

// note writes lines that are not about changes. It does so even if ctx has ended.
func (l *Log) note(ctx context.Context, lines ...Line) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return l.alone(ctx, func() error {
		for i := range lines {
			lines[i].Position = l.at.String()
		}
		return l.append(lines...)
	})
}

// Reopen closes the file and opens its path again. It is called after another program may have renamed the file.
func (l *Log) Reopen(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := l.alone(ctx, func() error {
		if err := l.cfg.To.reopen(); err != nil {
			return err
		}
		return l.append()
	})
	if err != nil {
		l.failed(FailedRename)
		l.cfg.Logger.Error("the audit log stays in the file that it has", zap.Error(err))
	}
}
