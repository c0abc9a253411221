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

// backfill reads the list of sessions, and the runs of those that have changed.
func (p *Poller) backfill(ctx context.Context) (failed error) {
	if err := p.openLedger(ctx); err != nil {
		return err
	}
	if p.sessions == nil {
		p.sessions = readSessions(p.ledger.State())
	}
	defer func() { failed = errors.Join(failed, p.markSessions()) }()
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
		return errors.New("an entry of the list has no session_id")
	}
	id, now := hash64([]byte(named.ID)), uint32(hash64(entry))
	if was, known := p.sessions.entry[id]; known && was == now {
		return nil
	}
	u, err := p.runs(named.ID)
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	a, err := p.get(ctx, u, seen{})
	if err != nil {
		return fmt.Errorf("session: %w", err)
	}
	if len(a.frames) > 0 {
		if err := p.recordAnswer(ctx, u, a); err != nil {
			return err
		}
	}
	p.sessions.set(id, now)
	if p.sessions.dirty >= markEvery {
		return p.markSessions()
	}
	return nil
}

// runs is the URL of a session's runs, which have no pages.
func (p *Poller) runs(session string) (*url.URL, error) {
	u := *p.url
	var err error
	u.RawPath = strings.TrimSuffix(u.EscapedPath(), "/") + "/" + url.PathEscape(session) + "/runs"
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, err
	}
	q := u.Query()
	for _, ofTheList := range []string{"page", "limit", "sort_by", "sort_order", "session_name"} {
		q.Del(ofTheList)
	}
	u.RawQuery = q.Encode()
	return &u, nil
}

func (p *Poller) markSessions() error {
	if p.sessions.dirty == 0 {
		return nil
	}
	if err := p.ledger.Mark(p.sessions.state()); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	p.sessions.dirty = 0
	return nil
}

// running is a hash of an answer as it comes.
type running struct{ gohash.Hash }

func newHash() running { return running{sha256.New()} }

func (r running) sum() string { return hex.EncodeToString(r.Sum(nil)[:8]) }
