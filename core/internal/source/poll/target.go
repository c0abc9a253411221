package poll

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// maxPages is the number of pages of one URL that are requested.
const maxPages = 500

// target is one URL with all its pages.
type target struct {
	url   *url.URL
	known bool // state is the ledger's
	state state
}

// state is the State of the ledger: the pages of a target that are recorded.
type state struct {
	Pages map[string]seen `json:"pages,omitempty"`
	After string          `json:"after,omitempty"` // the cursor behind the last full page
}

// seen identifies the last answer of a page.
type seen struct {
	ETag string `json:"etag,omitempty"`
	Hash string `json:"hash"`
	Next string `json:"next,omitempty"` // the number of pages or the next cursor; see Pages.next
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// pollTarget requests all pages of the target and records those that have changed.
func (p *Poller) pollTarget(ctx context.Context, t *target) error {
	if err := p.loadState(ctx, t); err != nil {
		return err
	}
	before := ""
	for page := 1; ; page++ {
		u, name := p.page(t, page)
		a, err := p.get(ctx, u, t.state.Pages[name])
		if err != nil {
			return err
		}
		more := false
		switch {
		case a.Hash == before && page > 1:
			return nil // the same page again: the server knows no pages
		case p.pages == nil:
		case p.pages.numbered():
			more = !a.empty && (a.Next == "" || page < atoi(a.Next))
		default:
			more = a.Next != "" && a.Next != t.state.After
		}
		turned := more && !p.pages.numbered() // the cursor moves
		before = a.Hash
		if changed := a.Hash != t.state.Pages[name].Hash && !a.empty; changed || a.ETag != t.state.Pages[name].ETag || turned {
			if t.state.Pages == nil {
				t.state.Pages = make(map[string]seen)
			}
			t.state.Pages[name] = a.seen
			if turned {
				t.state.After = a.Next
				t.state.Pages = nil // it is not requested again
			}
			if err := p.record(ctx, t, a, changed); err != nil {
				t.known = false // and neither is the state
				return err
			}
		}
		if !more {
			return nil
		}
		if page >= maxPages && p.pages.numbered() {
			p.Logger.Warn("there are more pages than are asked for", "url", source.Address(t.url), "pages", maxPages)
			return nil
		}
	}
}

func atoi(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0
	}
	return n
}

// page returns the URL of a page, and its name in the state.
func (p *Poller) page(t *target, page int) (*url.URL, string) {
	switch {
	case p.pages == nil:
		return t.url, ""
	case p.pages.numbered():
		return p.pages.page(*t.url, page, ""), strconv.Itoa(page)
	}
	return p.pages.page(*t.url, 0, t.state.After), "last"
}

// loadState reads the State that an earlier process left in the ledger.
func (p *Poller) loadState(ctx context.Context, t *target) error {
	if t.known {
		return nil
	}
	if err := p.openLedger(ctx); err != nil {
		return err
	}
	t.state = state{}
	if b := p.ledger.State(); len(b) > 0 {
		if err := json.Unmarshal(b, &t.state); err != nil {
			p.Logger.Warn("the state of a stream is not readable; all its pages are recorded again", "url", source.Address(t.url), "error", err)
			t.state = state{}
		}
	}
	t.known = true
	return nil
}

// record records an answer that has changed, and marks the ledger with the new state.
func (p *Poller) record(ctx context.Context, t *target, a *answer, changed bool) error {
	if changed {
		if err := p.recordAnswer(ctx, t.url, a); err != nil {
			return err
		}
	}
	b, err := json.Marshal(&t.state)
	if err == nil && len(b) > maxState {
		for name, s := range t.state.Pages { // long ETags
			s.ETag = ""
			t.state.Pages[name] = s
		}
		b, err = json.Marshal(&t.state)
	}
	if err != nil {
		return err
	}
	return p.ledger.Mark(b)
}
