// Package audit writes who did what: a line of JSON for each change of the store, read off its log, and one for
// each request that is refused and each reveal of sensitive values. It has no values of resources.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/wait"
)

// Events of lines, besides the types of changes.
const (
	// Opened begins a file: the changes after its position follow.
	Opened = "OPENED"
	// Gap says that changes before its position are not known: the log did not have them any more.
	Gap = "GAP"
	// Refused is a request that was refused since its caller is not known or may not do it.
	Refused = "REFUSED"
	// Revealed is a reveal of sensitive values.
	Revealed = "REVEALED"
	// Replaced is a catalogue that took the place of the one that was served.
	Replaced = "CATALOGUE_REPLACED"
)

// Line is a line of the audit log.
type Line struct {
	// Time of the change by the store's clock, or when the request was refused.
	Time time.Time `json:"time"`
	// Event is ADDED, MODIFIED or DELETED, or one of the events of this package.
	Event string `json:"event"`
	// Code of a refused request.
	Code      string `json:"code,omitempty"`
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"`
	Revision  string `json:"revision,omitempty"`
	// By is who did it, Address where it asked from, RequestID the id of the request.
	By        string `json:"by,omitempty"`
	Address   string `json:"address,omitempty"`
	RequestID string `json:"requestId,omitempty"`
	// Paths that a change of a resource changed, in the names of the store; none of a sensitive kind.
	Paths []string `json:"paths,omitempty"`
	// Catalogue is the hash of a catalogue that is served from now on.
	Catalogue string `json:"catalogue,omitempty"`
	// Position in the log: all changes up to it stand before the next line.
	Position string `json:"position"`
}

// Config of a log. All but Clock are required.
type Config struct {
	Hub *hub.Hub
	// Sensitive reports whether the changed paths of a kind are not told.
	Sensitive func(kind string) bool
	// To is where the lines go.
	To *File
	// Logger.
	Logger *zap.Logger
	// Clock. Default [time.Now].
	Clock func() time.Time
}

// Log is the audit log of one gateway. It is safe for concurrent use.
type Log struct {
	cfg Config

	mu sync.Mutex // guards the file and at
	// at is the position of the last line.
	at backend.Position
}

// Open takes up the log where its file ends. It starts nothing.
func Open(cfg Config) (*Log, error) {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	at, err := cfg.To.open()
	if err != nil {
		return nil, err
	}
	return &Log{cfg: cfg, at: at}, nil
}

// pause is how long it takes until a watch that ended, or a file that could not be written, is tried again.
const pause = time.Second

// Run writes the changes until ctx ends.
func (l *Log) Run(ctx context.Context) error {
	defer l.cfg.To.close()
	for {
		err := l.follow(ctx)
		if errors.Is(err, backend.ErrPositionExpired) {
			err = l.skip(ctx)
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !errors.Is(err, backend.ErrLagged) {
			l.cfg.Logger.Error("the audit log is behind", zap.Error(err))
		}
		if !wait.For(ctx, pause) {
			return nil
		}
	}
}

// follow writes changes until the watch of them ends.
func (l *Log) follow(ctx context.Context) error {
	w, err := l.cfg.Hub.Watch(ctx, hub.Watch{From: l.position()})
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
		if l.position().IsZero() {
			lines = append([]Line{l.opened(d.Position)}, lines...)
		}
		if err := l.write(d.Position, lines...); err != nil {
			return err
		}
	}
}

// skip notes that the changes up to now are not known.
func (l *Log) skip(ctx context.Context) error {
	w, err := l.cfg.Hub.Watch(ctx, hub.Watch{})
	if err != nil {
		return err
	}
	defer w.Close()
	d, err := w.Next(ctx)
	if err != nil {
		return err
	}
	l.cfg.Logger.Error("the audit log has a gap: the store's log did not reach back to its end")
	lines := []Line{{Time: l.cfg.Clock().UTC(), Event: Gap, Position: d.Position.String()}}
	for i := range d.Events {
		lines = append(lines, l.line(&d.Events[i]))
	}
	return l.write(d.Position, lines...)
}

// line returns the line of a change.
func (l *Log) line(e *backend.Event) Line {
	by := access.ParseActor(e.Actor)
	out := Line{
		Time: e.Time, Event: e.Type.String(), Kind: e.Resource.Kind, Namespace: e.Resource.Namespace, Name: e.Resource.Name, UID: e.Resource.UID,
		Revision: e.Revision.String(), By: by.Name, Address: by.Address, RequestID: by.Request, Position: e.Position.String(),
	}
	if !l.cfg.Sensitive(e.Resource.Kind) {
		out.Paths = slices.DeleteFunc(kind.ChangedPaths(e), func(path string) bool { return path == "metadata.updatedBy" }) // By says it
	}
	return out
}

func (l *Log) position() backend.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.at
}

// write appends lines, after which all changes up to a position are written.
func (l *Log) write(at backend.Position, lines ...Line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(lines) > 0 {
		if err := l.append(lines...); err != nil {
			return err
		}
	}
	l.at = at
	return nil
}

// append writes lines at once. The caller holds mu.
func (l *Log) append(lines ...Line) error {
	var out []byte
	for _, one := range lines {
		text, err := json.Marshal(one)
		if err != nil {
			return err
		}
		out = append(append(out, text...), '\n')
	}
	if lines[0].Event == Opened {
		return l.cfg.To.append(nil, out)
	}
	first, err := json.Marshal(l.opened(l.at))
	if err != nil {
		return err
	}
	return l.cfg.To.append(append(first, '\n'), out)
}

// opened returns the line that begins a file.
func (l *Log) opened(at backend.Position) Line {
	return Line{Time: l.cfg.Clock().UTC(), Event: Opened, Position: at.String()}
}

// Refuse writes that a request was refused.
func (l *Log) Refuse(ctx context.Context, refused *failure.Error) {
	line := l.request(ctx, Refused)
	line.Code, line.Kind, line.Namespace, line.Name = string(refused.Code), refused.Kind, refused.Namespace, refused.Name
	if err := l.note(line); err != nil {
		l.cfg.Logger.Error("a refusal is missing in the audit log", zap.Error(err))
	}
}

// Reveal writes that the sensitive values of a resource are revealed. If it cannot be written, they must not be.
func (l *Log) Reveal(ctx context.Context, key backend.Key) error {
	line := l.request(ctx, Revealed)
	line.Kind, line.Namespace, line.Name = key.Kind, key.Namespace, key.Name
	return l.note(line)
}

// Replace writes that another catalogue is served.
func (l *Log) Replace(ctx context.Context, hash string) {
	line := l.request(ctx, Replaced)
	line.Catalogue = hash
	if err := l.note(line); err != nil {
		l.cfg.Logger.Error("a replaced catalogue is missing in the audit log", zap.Error(err))
	}
}

// request returns a line about the request of a context.
func (l *Log) request(ctx context.Context, event string) Line {
	by := access.ActorFrom(ctx)
	return Line{Time: l.cfg.Clock().UTC(), Event: event, By: by.Name, Address: by.Address, RequestID: by.Request}
}

// note writes a line that is no change.
func (l *Log) note(line Line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line.Position = l.at.String()
	return l.append(line)
}

// Reopen begins a new file, since the one that is written may have been renamed.
func (l *Log) Reopen() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.cfg.To.reopen(); err != nil {
		l.cfg.Logger.Error("the audit log stays in the file that it has", zap.Error(err))
	}
}
