package service

import (
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/mirror"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/backend/service/reconcile"
	"github.com/sluicegw/sluice/backend/service/sender"
)

// Writer has the verbs that write. The file of each verb has its name, and the type write lists the phases of a write.
type Writer struct {
	cfg Config
	// kinds are the kinds in this version of the API; allKinds are the kinds of the whole catalogue.
	kinds      kind.Catalogue
	allKinds   kind.Catalogue
	clock      func() time.Time // of the store
	reader     *query.Reader
	loader     *loader
	unreadable *kind.Unreadable
	sender     *sender.Sender
	reconciler *reconcile.Reconciler
	locks      *keyLocks
	mirrors    *mirror.Mirrors
	reviews    *reviews
}

// Locks returns the locked resources with the most writers, and the number of all locked resources. most is the maximum
// number of resources in the result.
func (wr *Writer) Locks(most int) (busiest []LockState, locked int) { return wr.locks.busiest(most) }

// maxTag is the maximum number of characters of the prefix of request ids.
const maxTag = 16

// newWriter returns the writer of a service. The writer and its reconciler share a sender.
func (s *Service) newWriter() *Writer {
	tag := s.cfg.NewID()
	sends := &sender.Sender{
		Store:          s.cfg.Store,
		Hub:            s.hub,
		Clock:          s.clock,
		Tag:            tag[:min(len(tag), maxTag)] + "-",
		WriteTimeout:   s.cfg.WriteTimeout,
		OutcomeTimeout: s.cfg.OutcomeTimeout,
	}
	var mirrors *mirror.Mirrors
	reconciler := reconcile.New(reconcile.Config{
		Sender:      sends,
		Kinds:       s.kinds,
		Descriptors: s.cfg.Kinds,
		Index:       s.index,
		Unreadable:  s.unreadable,
		Logger:      s.cfg.Logger,
		NewID:       s.cfg.NewID,
		Handled:     s.cfg.Observe.Reconcile,
		Reevaluated: s.cfg.Observe.Reevaluated,
		Tracer:      s.cfg.Tracer,
		Remove:      func(k *kind.Kind, key backend.Key) { mirrors.Remove(k, key) },
	})
	locks := new(keyLocks)
	mirrors = mirror.New(mirror.Config{
		Owners:           s.cfg.Owners,
		Kinds:            s.kinds,
		Reconciler:       reconciler,
		Sender:           sends,
		Locks:            locks,
		NewID:            s.cfg.NewID,
		CompareIntervals: s.cfg.CompareIntervals,
		RetainEntries:    s.cfg.RetainEntries,
		Logger:           s.cfg.Logger,
	})
	return &Writer{
		cfg:        s.cfg,
		kinds:      s.kinds,
		allKinds:   s.kinds,
		clock:      s.clock,
		reader:     s.Reader,
		loader:     s.loader,
		unreadable: s.unreadable,
		sender:     sends,
		reconciler: reconciler,
		locks:      locks,
		mirrors:    mirrors,
		reviews:    new(reviews),
	}
}

// view returns a copy of the writer for a view of the catalogue. Both share the key locks.
func (wr *Writer) view(kinds kind.Catalogue, reader *query.Reader) *Writer {
	out := *wr
	out.kinds = kinds
	out.reader = reader
	return &out
}
