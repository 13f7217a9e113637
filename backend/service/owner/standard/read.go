package standard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
)

const (
	// maxGets is the maximum number of requests that one call of Get sends at a time.
	maxGets = 16
	// maxPages is the maximum number of pages in a list.
	maxPages = 1_000_000
	// maxToken is the maximum size of a page token, and maxTag the maximum size of a tag, in bytes.
	maxToken = 64 << 10
	maxTag   = 1024
	maxUID   = 256
)

func merge(to, from proto.Message) { proto.Merge(to, from) }

// nameIn returns the name by which requests identify a resource.
func (p *plan) nameIn(key backend.Key) string {
	if pattern := p.pattern(); pattern != "" {
		return expand(pattern, key.Namespace, key.Name)
	}
	return key.Name
}

// setKey sets the fields of a request that identify the resource.
func (p *plan) setKey(m *method, request protoreflect.Message, key backend.Key) {
	m.keyAt.setText(request, p.nameIn(key))
	m.namespaceAt.setText(request, key.Namespace)
}

// keyOf returns the key of the resource m.
func (p *plan) keyOf(m protoreflect.Message) (backend.Key, error) {
	return keyOf(p.name, p.pattern(), p.namespaceAt.text(m), p.nameAt.text(m))
}

// fetch reads a resource from the service; nil if it does not exist.
func (c *Client) fetch(ctx context.Context, p *plan, key backend.Key) (protoreflect.Message, error) {
	request := p.get.request()
	p.setKey(p.get, request, key)
	answer, err := p.get.ask(ctx, request)
	switch {
	case err == nil:
	case connect.IsWireError(err) && connect.CodeOf(err) == connect.CodeNotFound:
		return nil, nil
	default:
		return nil, err
	}
	if p.get.itself {
		return answer, nil
	}
	if !p.get.answerAt.has(answer) {
		return nil, nil
	}
	return p.get.answerAt.get(answer).Message(), nil
}

// show converts a message to a resource. It returns an error if the message has another key.
func (p *plan) show(key backend.Key, m protoreflect.Message) (owner.Resource, error) {
	is, err := p.keyOf(m)
	if err != nil {
		return owner.Resource{}, err
	}
	if is != key {
		return owner.Resource{}, fmt.Errorf("the service shows %s instead", shortText(is.String()))
	}
	out := owner.Resource{Key: key, Tag: p.tagAt.text(m), UID: p.uidAt.text(m), Description: p.descriptionAt.text(m)}
	for _, one := range []struct {
		what string
		text string
		most int
	}{{"tag", out.Tag, maxTag}, {"uid", out.UID, maxUID}} {
		if len(one.text) > one.most {
			return owner.Resource{}, fmt.Errorf("the %s has %d bytes; at most %d are accepted", one.what, len(one.text), one.most)
		}
	}
	if out.Labels, err = textsOf(p.labelsAt, m); err != nil {
		return owner.Resource{}, fmt.Errorf("labels: %w", err)
	}
	if out.Annotations, err = textsOf(p.annotationsAt, m); err != nil {
		return owner.Resource{}, fmt.Errorf("annotations: %w", err)
	}
	if len(p.createdAt) > 0 && p.createdAt.has(m) {
		if out.CreatedAt, err = timeOf(p.createdAt.get(m).Message()); err != nil {
			return owner.Resource{}, fmt.Errorf("%s: %w", p.createdAt, err)
		}
	}
	if len(p.deletedAt) > 0 && p.deletedAt.has(m) {
		if out.DeletionRequestedAt, err = timeOf(p.deletedAt.get(m).Message()); err != nil {
			return owner.Resource{}, fmt.Errorf("%s: %w", p.deletedAt, err)
		}
	}
	if out.Spec, err = shownPart(p.spec, p.specAt, m); err != nil {
		return owner.Resource{}, fmt.Errorf("spec: %w", err)
	}
	if p.status == nil || len(p.statusAt) > 0 && !p.statusAt.has(m) {
		return out, nil
	}
	if out.Status, err = shownPart(p.status, p.statusAt, m); err != nil {
		return owner.Resource{}, fmt.Errorf("status: %w", err)
	}
	return out, nil
}

// shownPart returns the spec or the status of a resource as JSON.
func shownPart(s *shape, at fieldAt, m protoreflect.Message) ([]byte, error) {
	if len(at) > 0 {
		m = at.get(m).Message()
	}
	object, err := s.decode(m)
	if err != nil {
		return nil, err
	}
	return plainJSON(object)
}

// plainJSON encodes a value as JSON. It does not escape the characters that are only special in HTML.
func plainJSON(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// textsOf returns the map of strings at a path; nil if it is not set.
func textsOf(at fieldAt, m protoreflect.Message) (map[string]string, error) {
	if len(at) == 0 || !at.has(m) {
		return nil, nil
	}
	values, err := textMap(at.get(m).Map())
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(values))
	for key, value := range values {
		out[key], _ = value.(string)
	}
	return out, nil
}

// Get implements [owner.Service]. It sends a request for each key.
func (c *Client) Get(ctx context.Context, keys []backend.Key) ([]owner.Got, error) {
	if len(keys) > owner.MaxKeys {
		return nil, fmt.Errorf("service %s: %w: %d keys were asked for; at most %d are accepted",
			c.name, owner.ErrNotSent, len(keys), owner.MaxKeys)
	}
	out := make([]owner.Got, len(keys))
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(maxGets)
	for i, key := range keys {
		all.Go(func() error {
			var err error
			out[i], err = c.getOne(ctx, key)
			return err
		})
	}
	return out, all.Wait()
}

func (c *Client) getOne(ctx context.Context, key backend.Key) (owner.Got, error) {
	p, err := c.plan(key.Kind)
	if err != nil {
		return owner.Got{}, err
	}
	if p.checkKey(key) != nil {
		return owner.Got{}, nil // no resource can have this key
	}
	m, err := c.fetch(ctx, p, key)
	switch {
	case err != nil && isUnreadable(err):
		return owner.Got{Unreadable: "the service does not show it: " + shortText(err.Error())}, nil
	case err != nil || m == nil:
		return owner.Got{}, err
	}
	r, err := p.show(key, m)
	if err != nil {
		return owner.Got{Unreadable: shortText(err.Error())}, nil
	}
	return owner.Got{Resource: &r}, nil
}

// isUnreadable reports whether the error of a Get is a decision about this one resource, so that others may still be
// readable.
func isUnreadable(err error) bool {
	if !connect.IsWireError(err) {
		return false
	}
	switch connect.CodeOf(err) {
	case connect.CodeInvalidArgument, connect.CodePermissionDenied, connect.CodeInternal, connect.CodeUnknown,
		connect.CodeDataLoss, connect.CodeFailedPrecondition, connect.CodeOutOfRange:
		return true
	}
	return false
}

// pageToken is where a list continues.
type pageToken struct {
	// namespace is the index of the namespace in the mapping. page is the number of the page.
	namespace, page int
	// token is the page token of the service. If the service has no pages, it is the last key of the page.
	token string
}

func (t pageToken) String() string { return fmt.Sprintf("%d.%d:%s", t.namespace, t.page, t.token) }

func parseToken(text string) (out pageToken, err error) {
	if text == "" {
		return out, nil
	}
	place, token, ok := strings.Cut(text, ":")
	namespace, page, both := strings.Cut(place, ".")
	if out.namespace, err = strconv.Atoi(namespace); err == nil {
		out.page, err = strconv.Atoi(page)
	}
	if err != nil || !ok || !both || out.namespace < 0 || out.page < 0 {
		return out, fmt.Errorf("%w: the page token %q is unknown", owner.ErrNotSent, shortText(text))
	}
	out.token = token
	return out, nil
}

// namespaces returns the namespaces to list one by one. If one list has the resources of all namespaces, it returns
// only "".
func (p *plan) namespaces() []string {
	if parent, _ := splitPattern(p.pattern()); !strings.Contains(parent, namespaceVariable) {
		return []string{""}
	}
	if len(p.mapping.Namespaces) > 0 {
		return p.mapping.Namespaces
	}
	return []string{everywhere}
}

// List implements [owner.Service].
func (c *Client) List(ctx context.Context, kind, token string, size int) (owner.Page, error) {
	p, err := c.plan(kind)
	if err != nil {
		return owner.Page{}, err
	}
	at, err := parseToken(token)
	namespaces := p.namespaces()
	if err == nil && at.namespace >= len(namespaces) {
		err = fmt.Errorf("%w: the page token %q is unknown", owner.ErrNotSent, shortText(token))
	}
	if err != nil {
		return owner.Page{}, fmt.Errorf("service %s: List: %w", c.name, err)
	}
	request := p.list.request()
	if parent, _ := splitPattern(p.pattern()); parent != "" {
		p.list.parentAt.setText(request, expand(parent, namespaces[at.namespace], ""))
	}
	paged := len(p.list.tokenAt) > 0 && len(p.list.nextAt) > 0
	if paged {
		p.list.tokenAt.setText(request, at.token)
		p.list.setSize(request, size)
	}
	answer, err := p.list.ask(ctx, request)
	if err != nil {
		return owner.Page{}, err
	}
	out := p.page(answer)
	next := pageToken{namespace: at.namespace, page: at.page + 1}
	if paged {
		next.token = p.list.nextAt.text(answer)
	} else {
		next.token = cutPage(&out, at.token, size)
	}
	if err := checkNext(at, next); err != nil {
		return owner.Page{}, fmt.Errorf("service %s: List: %w", c.name, err)
	}
	switch {
	case next.token != "":
		out.Next = next.String()
	case at.namespace+1 < len(namespaces):
		out.Next = pageToken{namespace: at.namespace + 1, page: at.page + 1}.String()
	}
	return out, nil
}

// checkNext returns an error if the next page could continue the list for ever.
func checkNext(at, next pageToken) error {
	switch {
	case next.token != "" && next.token == at.token:
		return errors.New("the next page token is the one that was asked for, so the list would not end")
	case len(next.token) > maxToken:
		return fmt.Errorf("the next page token has %d bytes; at most %d are accepted", len(next.token), maxToken)
	case next.page > maxPages:
		return fmt.Errorf("the list has more than the %d pages that are accepted", maxPages)
	}
	return nil
}

// setSize sets the page size in a request.
func (m *method) setSize(request protoreflect.Message, size int) {
	if len(m.sizeAt) == 0 {
		return
	}
	if v, err := wholeNumber(m.sizeAt.last().Kind(), strconv.Itoa(size)); err == nil {
		m.sizeAt.set(request, v)
	}
}

// page converts the resources in an answer of list.
func (p *plan) page(answer protoreflect.Message) (out owner.Page) {
	list := p.list.answerAt.get(answer).List()
	for i := range list.Len() {
		m := list.Get(i).Message()
		key, err := p.keyOf(m)
		if err != nil { // it is not known which resource this is
			out.Unreadable = append(out.Unreadable, owner.Unreadable{
				Key: backend.Key{Kind: p.name}, Message: shortText(err.Error()),
			})
			continue
		}
		r, err := p.show(key, m)
		if err != nil {
			out.Unreadable = append(out.Unreadable, owner.Unreadable{Key: key, Message: shortText(err.Error())})
			continue
		}
		out.Resources = append(out.Resources, r)
	}
	return out
}

// cutPage reduces a list without pages to a page of at most size resources after a key. It returns
// the last key of the page; empty at the end. Unreadable resources are only on the first page.
func cutPage(page *owner.Page, after string, size int) (next string) {
	if size <= 0 {
		return ""
	}
	place := func(key backend.Key) string { return key.Namespace + "/" + key.Name }
	slices.SortFunc(page.Resources, func(a, b owner.Resource) int { return strings.Compare(place(a.Key), place(b.Key)) })
	page.Resources = slices.DeleteFunc(page.Resources, func(r owner.Resource) bool { return place(r.Key) <= after })
	if after != "" {
		page.Unreadable = nil
	}
	if len(page.Resources) > size {
		page.Resources = page.Resources[:size]
		next = place(page.Resources[size-1].Key)
	}
	return next
}
