package poll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/retry"
)

// failing is an item that was not answered. It is asked for again later and later, or when its entry in the list changes.
type failing struct {
	entry   uint32
	err     error
	until   time.Time
	backoff retry.Backoff
}

// itemsError is that of items alone: the server answers.
type itemsError struct{ error }

func (e itemsError) Unwrap() error { return e.error }

// items reads a list, and requests those of its items that have changed.
func (p *Poller) items(ctx context.Context) (failed error) {
	if err := p.openLedger(ctx); err != nil {
		return err
	}
	if p.seenItems == nil {
		p.seenItems = readSeenItems(p.ledger.State())
	}
	defer func() { failed = errors.Join(failed, p.markItems()) }()
	before := ""
	for number := 1; number <= maxPages; number++ {
		a, err := p.get(ctx, p.pages.page(*p.url, number, ""), seen{})
		if err != nil {
			return err
		}
		if a.data == nil && !a.empty {
			return errors.New("the list is longer than max_body, or NDJSON")
		}
		if a.empty || a.Hash == before {
			return failed
		}
		before = a.Hash
		for _, item := range p.pages.items(a.data) {
			if err := p.item(ctx, item); err != nil {
				if busy := (*source.Answered)(nil); ctx.Err() != nil || errors.As(err, &busy) && busy.After > 0 {
					return err
				}
				failed = itemsError{err} // the other items are requested all the same
			}
		}
		if a.Next != "" && number >= atoi(a.Next) {
			return failed
		}
	}
	p.Logger.Warn("the list has more pages than are requested", "url", source.Address(p.url), "pages", maxPages)
	return failed
}

// item requests an item if its entry in the list has changed.
func (p *Poller) item(ctx context.Context, entry json.RawMessage) error {
	name := text(lookup(entry, p.pages.Each.ID))
	if name == "" {
		return fmt.Errorf("an item of the list has no %s", p.pages.Each.ID)
	}
	id, now := hash64([]byte(name)), uint32(hash64(entry))
	if was, known := p.seenItems.entry[id]; known && was == now {
		return nil
	}
	was := p.failing[id]
	if was != nil && was.entry == now && time.Now().Before(was.until) {
		return was.err
	}
	u, err := p.itemURL(name)
	if err != nil {
		return fmt.Errorf("item: %w", err)
	}
	a, err := p.get(ctx, u, seen{})
	if err != nil {
		if was == nil || was.entry != now {
			was = &failing{entry: now, backoff: p.backoff}
			was.backoff.Reset()
			p.failing[id] = was
		}
		was.err, was.until = fmt.Errorf("item: %w", err), time.Now().Add(was.backoff.Next())
		return was.err
	}
	delete(p.failing, id)
	if len(a.frames) > 0 {
		if err := p.recordAnswer(ctx, u, a); err != nil {
			return err
		}
	}
	p.seenItems.set(id, now)
	if p.seenItems.dirty >= markEvery {
		return p.markItems()
	}
	return nil
}

// itemURL is the URL of an item, which has no pages.
func (p *Poller) itemURL(name string) (*url.URL, error) {
	u := *p.url
	var err error
	u.RawPath = strings.TrimSuffix(u.EscapedPath(), "/") + strings.ReplaceAll(p.pages.Each.Path, "{{id}}", url.PathEscape(name))
	if u.Path, err = url.PathUnescape(u.RawPath); err != nil {
		return nil, err
	}
	q := u.Query()
	for _, ofTheList := range p.pages.Each.Without {
		q.Del(ofTheList)
	}
	u.RawQuery = q.Encode()
	return &u, nil
}

func (p *Poller) markItems() error {
	if p.seenItems.dirty == 0 {
		return nil
	}
	if err := p.ledger.Mark(p.seenItems.state()); err != nil {
		return fmt.Errorf("mark: %w", err)
	}
	p.seenItems.dirty = 0
	return nil
}
