package poll

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	gohash "hash"
	"net/url"
	"strconv"
	"strings"

	"github.com/earshot-dev/earshot/core/internal/source"
)

// maxSessions is how many sessions are remembered.
const maxSessions = 100_000

// backfill reads the list of sessions, and the runs of those that have changed.
func (p *Poller) backfill(ctx context.Context) error {
	var failed error
	before := ""
	for page := 1; page <= maxPages; page++ {
		u := *p.url
		q := u.Query()
		q.Set("page", strconv.Itoa(page))
		u.RawQuery = q.Encode()
		a, err := p.get(ctx, &u, seen{})
		if err != nil {
			return err
		}
		if a.data == nil && !a.empty {
			return errors.New("the list of sessions is longer than max_body, or NDJSON")
		}
		if a.empty || a.Hash == before {
			return failed
		}
		before = a.Hash
		all, total := items(a.data)
		for _, entry := range all {
			if err := p.session(ctx, entry); err != nil {
				if ctx.Err() != nil {
					return err
				}
				failed = err // the others are asked all the same
			}
		}
		if total > 0 && page >= total {
			return failed
		}
	}
	p.Logger.Warn("there are more pages of sessions than are asked for", "url", source.Address(p.url), "pages", maxPages)
	return failed
}

// session asks for the runs of a session if its entry in the list has changed.
func (p *Poller) session(ctx context.Context, entry json.RawMessage) error {
	var named struct {
		ID string `json:"session_id"`
	}
	if err := json.Unmarshal(entry, &named); err != nil || named.ID == "" {
		return fmt.Errorf("an entry of the list has no session_id")
	}
	t := p.sessions[named.ID]
	if t == nil {
		if len(p.sessions) >= maxSessions {
			return fmt.Errorf("more than %d sessions", maxSessions)
		}
		u := *p.url
		path := strings.TrimSuffix(u.EscapedPath(), "/") + "/" + url.PathEscape(named.ID) + "/runs"
		u.RawPath = path
		var err error
		if u.Path, err = url.PathUnescape(path); err != nil {
			return err
		}
		q := u.Query()
		for _, of := range []string{"page", "limit", "sort_by", "sort_order", "session_name"} {
			q.Del(of)
		}
		u.RawQuery = q.Encode()
		t = &target{url: &u}
		p.sessions[named.ID] = t
	}
	if err := p.recall(ctx, t); err != nil {
		return err
	}
	h := hash(entry)
	if t.state.Entry == h {
		return nil
	}
	if err := p.runs(ctx, t, h); err != nil {
		return fmt.Errorf("session: %w", err)
	}
	return nil
}

// runs asks for all runs of a session, which have no pages.
func (p *Poller) runs(ctx context.Context, t *target, entry string) error {
	before := t.state.Pages[""]
	a, err := p.get(ctx, t.url, before)
	if err != nil {
		return err
	}
	t.state.Pages, t.state.Entry = map[string]seen{"": a.seen}, entry
	if err := p.record(ctx, t, a, a.Hash != before.Hash && len(a.frames) > 0); err != nil {
		t.known = false
		return err
	}
	return nil
}

// running is a hash of an answer as it comes.
type running struct{ gohash.Hash }

func newHash() running { return running{sha256.New()} }

func (r running) sum() string { return hex.EncodeToString(r.Sum(nil)[:16]) }
