package change

import "github.com/sluicegw/sluice/backend"

// ResumePoint is a point in a snapshot at which another stream can take over: the beginning of a page, or a point
// within it. A page is the result of one call of [Stream.Poll]. It has resources, followed by changes of resources that
// were already sent.
//
//	at                                          end
//	 |  SNAPSHOT a  SNAPSHOT b  MODIFIED a  ...  |  the next page
//
// A stream that resumes within a page reads the page again after the last resource that was sent, and the log from the
// position of the page. The resources may be newer this time. Therefore the resume point has the revisions that were
// sent: no change is sent twice, and no deletion of a sent resource is missed.
type ResumePoint struct {
	// at is the snapshot before the page, or before the rest of the page that must still be sent. end is the snapshot
	// after the page.
	at, end snapshot
	// sent has the events of the page; nil until the page was read.
	sent []sentChange
}

// sentChange is an event of a page that was already sent. key is zero for a mark.
type sentChange struct {
	key      backend.Key
	revision backend.Revision
	kind     Type
	position backend.Position
}

// record stores the events of the page and the snapshot after the page. end is nil if the snapshot is complete.
func (p *ResumePoint) record(page []Change, end *snapshot) {
	if end != nil {
		p.end = *end
	}
	p.sent = make([]sentChange, len(page))
	for i := range page {
		c := &page[i]
		p.sent[i] = sentChange{kind: c.Type, position: c.position}
		if c.Stored != nil {
			p.sent[i].key, p.sent[i].revision = c.Stored.Key, c.Stored.Revision
		}
	}
}

// After returns the resume point that follows the first n events of the page.
func (p *ResumePoint) After(n int) *ResumePoint {
	switch {
	case n == 0:
		return p
	case n >= len(p.sent):
		return &ResumePoint{at: p.end}
	}
	out := p.at
	out.sent = &sentPage{kind: p.at.kind, after: p.at.after, revisions: map[backend.Key]backend.Revision{}}
	if p.at.sent != nil {
		page := p.at.page()
		out.sent = &page
	}
	for i := range p.sent[:n] {
		switch c := &p.sent[i]; c.kind {
		case Snapshot:
			out.sent.revisions[c.key] = c.revision
			out.after = backend.Successor(backend.OrderTuple(c.key.Namespace, c.key.Name))
		case Deleted:
			delete(out.sent.revisions, c.key)
		default:
			out.sent.revisions[c.key] = c.revision
		}
	}
	if last := &p.sent[n-1]; p.sent[n].kind != Snapshot { // all resources of the page were delivered
		out.kind, out.after = p.end.kind, p.end.after
		if last.kind != Snapshot {
			out.position = last.position
		}
	}
	return &ResumePoint{at: out}
}
