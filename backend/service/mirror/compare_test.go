package mirror

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestPageTokens_AListEndsThatGoesOnAndOn(t *testing.T) {
	for name, one := range map[string]struct {
		token  func(page int) string
		listed func(page int) int
		// ends is the page at which the list is left, and why what the error says.
		ends int
		why  string
	}{
		"the same pages": {
			token:  func(page int) string { return fmt.Sprint(page % 3) },
			listed: func(page int) int { return min(page, 3) },
			ends:   6,
			why:    "a page token comes again, after 3 resources",
		},
		"nothing new": {
			token:  func(page int) string { return fmt.Sprint(page) },
			listed: func(page int) int { return min(page, 7) },
			ends:   7 + maxIdlePages,
			why:    "1000 pages in a row showed nothing new, after 7 resources",
		},
		"too much": {
			token:  func(page int) string { return fmt.Sprint(page) },
			listed: func(page int) int { return page * listSize },
			ends:   maxListed/listSize + 1,
			why:    "it has more than 5000000 resources",
		},
	} {
		t.Run(name, func(t *testing.T) {
			pages := pageTokens{kind: "Team"}
			page := 1
			err := pages.next(one.token(page), one.listed(page))
			for err == nil && page < one.ends+1 {
				page++
				err = pages.next(one.token(page), one.listed(page))
			}
			if page != one.ends || !errors.Is(err, errEndless) || !strings.Contains(err.Error(), one.why) {
				t.Errorf("page %d: %v; want page %d and %q", page, err, one.ends, one.why)
			}
		})
	}
}

func TestPageTokens_EmptyPagesMayComeBetweenOthers(t *testing.T) {
	pages := pageTokens{kind: "Team"}
	for page := range 10 * maxIdlePages {
		if err := pages.next(fmt.Sprint(page), page/(maxIdlePages-1)); err != nil {
			t.Fatalf("page %d: %v", page, err)
		}
	}
}
