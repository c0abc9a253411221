package browser

import (
	"fmt"
	"testing"
	"time"
)

// everyBoard looks at every board at three widths, in the light and in the dark: each panel has something to
// show, none has failed, nothing overflows, and a person who cannot see it can read it.
func everyBoard(t *testing.T, w *world, b *tab, rules string) {
	b.setAppearance(t, "light", 1440, 900)
	b.open(t, w.url+"/boards")
	boards := eval[[]string](t, b, `Array.from(document.querySelectorAll(".cards a")).map(a => a.pathname)`)
	if len(boards) < 7 {
		t.Fatalf("only %d boards: %q", len(boards), boards)
	}
	empty := 0
	for _, path := range boards {
		for _, scheme := range []string{"light", "dark"} {
			b.setAppearance(t, scheme, 1440, 2400)
			began := time.Now()
			b.open(t, w.url+path+"?from=now-6h&to=now")
			b.until(t, `!document.querySelector("[data-late]")`)
			took := time.Since(began)
			paint := b.firstPaint(t)
			for _, width := range []int64{1440, 900, 390} {
				name := fmt.Sprintf("board-%s-%s-%d", path[len("/boards/"):], scheme, width)
				height := int64(2400)
				if width < 1000 {
					height = 6000
				}
				b.setAppearance(t, scheme, width, height)
				b.until(t, `Array.from(document.querySelectorAll(".plot.drawn")).every(p => Math.abs(p.querySelector(".uplot").clientWidth - p.clientWidth) < 2)`)
				b.shot(t, name)
				if out := eval[[]string](t, b, overflowing); len(out) > 0 {
					t.Errorf("%s: overflow the window: %q", name, out)
				}
				if failed := eval[[]string](t, b, `Array.from(document.querySelectorAll(".failed-panel, .filters .bad")).map(e => e.textContent)`); len(failed) > 0 {
					t.Errorf("%s: failed: %q", name, failed)
				}
			}
			if bad := b.violations(t, rules); len(bad) > 0 {
				t.Errorf("%s, %s: %q", path, scheme, bad)
			}
			if bad := b.consoleErrors(); len(bad) > 0 {
				t.Errorf("%s, %s: console: %q", path, scheme, bad)
			}
			drawn := eval[int](t, b, `document.querySelectorAll(".panel").length`)
			if scheme == "light" {
				empty += eval[int](t, b, `document.querySelectorAll(".panel:not(.is-stat) .none").length`)
			}
			t.Logf("%-24s %-5s %2d panels, first paint %4.0f ms, answer %4.0f ms, all %s", path, scheme, drawn, paint[0], paint[1], took.Round(time.Millisecond))
		}
	}
	t.Logf("%d panels have nothing to show", empty)
}

// zooms drags over a chart: the range of time is in the address of the page that follows.
func zooms(t *testing.T, w *world, b *tab) {
	b.setAppearance(t, "light", 1440, 1200)
	b.open(t, w.url+"/boards/sessions?format=claude-code")
	b.until(t, `document.querySelector(".u-over") && document.querySelector("footer") && !document.querySelector("[data-late]")`)
	eval[bool](t, b, `(document.querySelector(".u-over").scrollIntoView({block: "center", behavior: "instant"}), true)`)
	box := eval[[]float64](t, b, `(() => { const r = document.querySelector(".u-over").getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()`)
	y := box[1] + box[3]/2
	b.drag(t, box[0]+box[2]*0.25, y, box[0]+box[2]*0.75, y)
	b.until(t, `/from=\d{13}/.test(location.search) && /to=\d{13}/.test(location.search) && location.search.includes("format=claude-code")`)
	b.until(t, `document.querySelector("footer")`)
	if span := eval[float64](t, b, `(p => p.get("to") - p.get("from"))(new URL(location.href).searchParams)`) / 3600e3; span < 2.8 || span > 3.2 {
		t.Errorf("half of six hours are %.2f", span)
	}
	// The charts take the system's new colors where they are: the page is not loaded again.
	b.until(t, `document.querySelector("canvas") && !document.querySelector("[data-late]")`)
	eval[bool](t, b, `(window.light = document.querySelector("canvas").toDataURL(), true)`)
	b.setAppearance(t, "dark", 1440, 1200)
	b.until(t, `window.light && document.querySelector("canvas").toDataURL() !== window.light`)
	if bad := b.consoleErrors(); len(bad) > 0 {
		t.Errorf("console: %q", bad)
	}
}
