package redis

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// outcome reads the script's answer.
func (s *Store) outcome(p *proposal, reply []any) (backend.Result, error) {
	switch word := text(reply, 0); word {
	case "ok":
		res, err := s.result(p, reply)
		if err != nil {
			// The batch was applied, but the answer does not decode.
			return res, fmt.Errorf("apply: %w: %w", backend.ErrUnknown, err)
		}
		return res, nil
	case "deadline":
		return backend.Result{}, backend.ErrDeadline
	case "condition":
		return backend.Result{}, p.conditionError(reply)
	case "unreadable":
		i, err := p.action(text(reply, 1))
		if err != nil {
			return backend.Result{}, err
		}
		return backend.Result{}, storekit.Unreadable(p.batch.Actions[i].Key, backend.ErrUnreadable)
	case "error":
		return backend.Result{}, fmt.Errorf("apply: %w: %.200s", backend.ErrUnavailable, text(reply, 1))
	case "format":
		return backend.Result{}, fmt.Errorf("apply: %s: %w", otherFormat(text(reply, 1)), backend.ErrFormat)
	default:
		return backend.Result{}, fmt.Errorf("apply: unknown answer %.20q: %w", word, backend.ErrUnknown)
	}
}

// action reads the number of an action, which scripts count from 1.
func (p *proposal) action(number string) (int, error) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(p.batch.Actions) {
		return 0, fmt.Errorf("apply: unknown action %.20q: %w", number, backend.ErrUnavailable)
	}
	return n - 1, nil
}

func (p *proposal) conditionError(reply []any) error {
	i, err := p.action(text(reply, 1))
	if err != nil {
		return err
	}
	ce := &backend.ConditionError{Action: i, Key: p.batch.Actions[i].Key}
	word, known := text(reply, 2), false
	if ce.Err, known = map[string]error{
		"absent": backend.ErrNotFound, "exists": backend.ErrExists, "conflict": backend.ErrConflict, "deleting": backend.ErrDeleting,
		"notdeleting": backend.ErrNotDeleting, "referenced": backend.ErrReferenced, "finalized": backend.ErrFinalized,
	}[word]; !known {
		return fmt.Errorf("apply: unknown condition %.20q: %w", word, backend.ErrUnavailable)
	}
	if record := text(reply, 3); record != "" {
		if ce.Current, err = decodeRecord(ce.Key, record); err != nil {
			return storekit.Unreadable(ce.Key, err)
		}
	}
	return ce
}

// result reads what an applied batch left behind.
func (s *Store) result(p *proposal, reply []any) (backend.Result, error) {
	n := len(p.batch.Actions)
	res := backend.Result{Resources: make([]*backend.Resource, n), Revisions: make([]backend.Revision, n)}
	for i := range p.batch.Actions {
		a, said := &p.batch.Actions[i], text(reply, i+2)
		var err error
		switch a.Op {
		case backend.OpPut:
			res.Resources[i], err = putResult(a, said)
			if err == nil {
				res.Revisions[i] = res.Resources[i].Revision
			}
		case backend.OpDelete:
			id, record, _ := strings.Cut(said, "\n")
			if res.Revisions[i], err = backend.ParseRevision(id); err == nil && record != "" {
				res.Resources[i], err = decodeRecord(a.Key, record)
			} else if err == nil {
				res.Resources[i] = &backend.Resource{Key: a.Key}
			}
		default:
			if said != "" {
				res.Resources[i], err = decodeRecord(a.Key, said)
			}
		}
		if err != nil {
			return backend.Result{}, err
		}
	}
	head, err := parseRevision(text(reply, 1))
	if err != nil {
		return backend.Result{}, err
	}
	s.core.see(p.shard.index, head)
	heads := make([]backend.Revision, len(s.core.shards))
	heads[p.shard.index] = head
	res.Position = backend.NewPosition(heads...)
	return res, nil
}

// putResult is the resource that a put stored, whose record without the body the script
// has returned.
func putResult(a *backend.Action, said string) (*backend.Resource, error) {
	h, err := parseHeader(said)
	if err != nil {
		return nil, err
	}
	r := h.resource(a.Key, a.Put.Body)
	if r.Refs = a.Put.Refs; a.Put.Declared == "" {
		r.Refs, err = decodeRefs(h.refs)
	}
	return r, err
}
