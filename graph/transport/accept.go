package transport

import (
	"slices"
	"strconv"
	"strings"
)

// The media types of answers.
const (
	typeJSON     = "application/json"
	typeResponse = "application/graphql-response+json"
	typeEvents   = "text/event-stream"
)

// maxRanges is how many media ranges of an Accept header are read.
const maxRanges = 32

// negotiate returns the one of the offered media types that an Accept header
// prefers, the first of equals; "" if it accepts none. Without a header
// everything is accepted (RFC 9110, 12.5.1).
func negotiate(header []string, offered ...string) string {
	switch {
	case strings.TrimSpace(strings.Join(header, "")) == "":
		return offered[0]
	case len(header) == 1 && slices.Contains(offered, header[0]): // most name one alone
		return header[0]
	}
	ranges := rangesOf(header)
	best, at := preference{}, ""
	for _, offer := range offered {
		if p := prefer(ranges, offer); p.over(best) {
			best, at = p, offer
		}
	}
	return at
}

// names says whether an Accept header accepts a media type by its name.
func names(header []string, media string) bool {
	p := prefer(rangesOf(header), media)
	return p.specific == exact && p.quality > 0
}

func rangesOf(header []string) []string {
	ranges := strings.SplitN(strings.Join(header, ","), ",", maxRanges+1)
	return ranges[:min(len(ranges), maxRanges)]
}

// preference is what a header says of one media type.
type preference struct {
	quality  float64
	specific int // of the range that says it
	place    int // of that range
}

// prefer returns what the most specific range that covers an offer says of it.
func prefer(ranges []string, offer string) (p preference) {
	for i, r := range ranges {
		name, quality := mediaRange(r)
		if s := matches(name, offer); s > p.specific {
			p = preference{quality: quality, specific: s, place: i}
		}
	}
	return p
}

// over says whether the client would rather have p than q. Of two that it names
// with equal quality it wants the first.
func (p preference) over(q preference) bool {
	switch {
	case p.quality != q.quality:
		return p.quality > q.quality
	case p.quality == 0:
		return false
	case p.specific == exact && q.specific == exact:
		return p.place < q.place
	}
	return p.specific == exact && q.specific != exact
}

const exact = 3

// matches says how specifically a range covers a type: 0 not at all, 3 exactly.
func matches(name, offer string) int {
	family, _, _ := strings.Cut(offer, "/")
	switch name {
	case offer:
		return exact
	case family + "/*":
		return 2
	case "*/*":
		return 1
	}
	return 0
}

// mediaRange reads one range. Parameters other than q do not count: a range
// with charset=utf-8 is what we send anyway.
func mediaRange(s string) (name string, q float64) {
	name, params, _ := strings.Cut(s, ";")
	q = 1
	for p := range strings.SplitSeq(params, ";") {
		key, value, _ := strings.Cut(strings.TrimSpace(p), "=")
		if strings.EqualFold(strings.TrimSpace(key), "q") {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil || !(v >= 0 && v <= 1) {
				v = 0
			}
			q = v
		}
	}
	return strings.ToLower(strings.TrimSpace(name)), q
}
