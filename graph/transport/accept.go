package transport

import (
	"mime"
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

// maxRanges is the maximum number of media ranges that are read from an Accept header.
const maxRanges = 32

// negotiate returns the offered media type that an Accept header prefers; "" if it accepts none. If several are
// preferred equally, it returns the first of these. A missing header accepts everything (RFC 9110, section 12.5.1).
func negotiate(header []string, offered ...string) (best string) {
	switch {
	case strings.TrimSpace(strings.Join(header, "")) == "":
		return offered[0]
	case len(header) == 1 && slices.Contains(offered, header[0]): // most clients name one alone
		return header[0]
	}
	most := preference{}
	for _, offer := range offered {
		if p := prefer(header, offer); p.over(most) {
			most, best = p, offer
		}
	}
	return best
}

// names reports whether an Accept header accepts a media type by its exact name, not only by a wildcard.
func names(header []string, media string) bool {
	p := prefer(header, media)
	return p.exact && p.quality > 0
}

// preference is the preference of an Accept header for a media type.
type preference struct {
	quality float64
	exact   bool // by name, not by a wildcard
	place   int  // of the range in the header
}

// prefer returns the preference for an offer. The most specific range that covers the offer decides.
func prefer(header []string, offer string) (p preference) {
	family, _, _ := strings.Cut(offer, "/")
	covers := []string{"*/*", family + "/*", offer}
	specific := -1
	ranges := strings.SplitN(strings.Join(header, ","), ",", maxRanges+1)
	for i, r := range ranges[:min(len(ranges), maxRanges)] {
		// Parameters other than q are ignored: answers always have charset=utf-8.
		name, params, _ := mime.ParseMediaType(r)
		if s := slices.Index(covers, name); s > specific {
			specific = s
			p = preference{quality: 1, exact: name == offer, place: i}
			if q, ok := params["q"]; ok {
				p.quality, _ = strconv.ParseFloat(q, 64)
			}
			if !(p.quality >= 0 && p.quality <= 1) {
				p.quality = 0
			}
		}
	}
	return p
}

// over reports whether a type with the preference p is preferred to a type with q. The quality decides first, then
// whether the header names the type exactly, and then which type it names first.
func (p preference) over(q preference) bool {
	switch {
	case p.quality != q.quality:
		return p.quality > q.quality
	case p.quality == 0 || !p.exact:
		return false
	}
	return !q.exact || p.place < q.place
}
