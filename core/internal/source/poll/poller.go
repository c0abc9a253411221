package poll

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/retry"
)

// Poller polls one URL.
type Poller struct {
	Settings
	url       *url.URL
	interval  time.Duration
	http      *http.Client
	backoff   retry.Backoff
	rec       source.Recorder
	whole     *target // of the URL itself
	ledger    source.Recording
	pages     *Pages     // nil: one answer has everything
	seenItems *seenItems // of a list whose items are requested
	failing   map[uint64]*failing
	logged    string // the last failure that was logged

	polled  atomic.Bool // one round at least
	polling atomic.Bool
}

// Idle implements source.Listener: a round has ended, and the next one has not begun.
func (p *Poller) Idle() bool { return p.polled.Load() && !p.polling.Load() }

// Run implements source.Listener. It may be called once.
func (p *Poller) Run(ctx context.Context, rec source.Recorder) error {
	defer p.http.CloseIdleConnections()
	p.rec = rec
	for {
		p.polling.Store(true)
		err := p.round(ctx)
		p.polled.Store(true)
		p.polling.Store(false)
		pause := p.interval
		if ctx.Err() == nil {
			p.Attempted(source.Address(p.url), err)
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			if errors.As(err, &itemsError{}) {
				p.backoff.Reset()
			} else {
				pause = max(p.backoff.Next(), p.interval)
			}
			if busy := (*source.Answered)(nil); errors.As(err, &busy) {
				pause = max(pause, busy.After)
			}
			if text := err.Error(); text != p.logged {
				p.logged = text
				p.Logger.Warn("not answered; it is asked again", "url", source.Address(p.url), "error", err)
			}
		default:
			p.backoff.Reset()
			p.logged = ""
		}
		if !retry.Wait(ctx, pause) {
			return nil
		}
	}
}

// round requests everything once.
func (p *Poller) round(ctx context.Context) error {
	if p.pages.lists(p.url) {
		return p.items(ctx)
	}
	if p.whole == nil {
		p.whole = &target{url: p.url}
	}
	return p.pollTarget(ctx, p.whole)
}
