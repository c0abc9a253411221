package gen

import (
	"math"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// pool holds sentences in several scripts, of which texts are put together.
type pool struct{ prose, code []string }

// words by script; most text is in the first.
var scripts = []struct {
	share int
	words []string
}{
	{84, strings.Fields("harbour lantern orchard gauge valve copper signal ledger willow pier tide beacon rudder canvas kiln ember quarry fern moss pebble walks turns opens closes counts mends the a of under over before after seven twelve early late slowly twice never always checked again without any further notice from its old keeper")},
	{4, strings.Fields("größe übung straße fähre naïve café señal año déjà vu œuvre łódź ćma žába příliš şehir ığdır ångström smørbrød")},
	{3, strings.Fields("маяк гавань вечер ветер медленно считает фонари старый сад у реки дважды никогда снова тихо")},
	{3, strings.Fields("灯塔 港口 傍晚 慢慢地 数着 灯笼 老园丁 在河边 再次 检查 水位 没有 异常 记录 完成")},
	{2, strings.Fields("منارة ميناء مساء ببطء يعد الفوانيس القديمة قرب النهر مرتين")},
	{1, strings.Fields("दीपस्तंभ बंदरगाह शाम धीरे गिनता लालटेन पुराना बाग नदी")},
	{1, strings.Fields("φάρος λιμάνι βράδυ αργά μετράει φανάρια παλιός κήπος ποτάμι")},
	{2, strings.Fields("🌊 ⚓ 🏮 🌿 🪵 🔧 👩‍🌾 🇮🇸 ✅ 🚧 📈 🐸")},
}

// codeLines are lines that tools read and print. About every fiftieth byte of the whole corpus
// is an escape, as in transcripts of real work.
var codeLines = []string{
	"\tif err != nil {\n\t\treturn fmt.Errorf(\"gauge: %w\", err)\n\t}\n",
	"    for lamp in sorted(lamps, key=lambda lamp: (lamp.pier, lamp.number)):\n        print(f\"{lamp.name} {lamp.level:.2f} of {lamp.capacity:.2f}\")\n",
	"{\"path\": \"C:\\\\harbour\\\\pier.txt\", \"size\": 4096}\n",
	"SELECT pier, count(*) AS lit FROM lanterns WHERE lit = true AND checked_at > now() - INTERVAL 1 DAY GROUP BY pier ORDER BY lit DESC;\n",
	"drwxr-xr-x  2 keeper keeper   4096 Nov  1 08:00 /srv/harbour/logs/archive/2026/10\n",
	"-rw-r--r--  1 keeper keeper 168204 Nov  1 08:00 /srv/harbour/logs/archive/2026/10/tide.csv\n",
	"-rw-r--r--  1 keeper keeper    733 Nov  1 08:01 /srv/harbour/logs/archive/2026/10/README.md\n",
	"  142\tfunc (h *Harbour) Lanterns(ctx context.Context, pier Pier) ([]Lantern, error) {\n",
	"  143\t// The keeper counts from the sea, so the first lantern is the outermost one.\n",
	"  144\tlanterns, err := h.store.List(ctx, pier, OrderBy(Distance), Limit(h.limit))\n",
	"/srv/harbour/lanterns/order_test.go:118: lantern 7 came before lantern 12, want the order of the pier\n",
	"\x1b[32mPASS\x1b[0m  TestLanternOrder (0.03s)\n",
	"ok      harbour.example/lanterns        0.412s  coverage: 81.4% of statements\n",
	"<li class=\"lamp\">Pier & harbour — 7 of 12</li>\n",
	"+++ b/lanterns/order.go\n@@ -12,7 +12,9 @@ func (h *Harbour) Lanterns(ctx context.Context, pier Pier)\n",
	"2026-11-01T08:00:03.118Z INFO  gauge read level=4.31 unit=m station=pier-3 took=18ms attempts=1\n",
	"2026-11-01T08:00:04.002Z WARN  gauge slow level=4.33 unit=m station=pier-7 took=1204ms attempts=3\n",
}

func newPool(rng *rand.Rand) *pool {
	p := &pool{}
	for range 2000 {
		p.prose = append(p.prose, sentence(rng))
	}
	for range 500 {
		p.code = append(p.code, codeLines[rng.IntN(len(codeLines))])
	}
	return p
}

func sentence(rng *rand.Rand) string {
	total := 0
	for _, s := range scripts {
		total += s.share
	}
	n := rng.IntN(total)
	i := 0
	for ; n >= scripts[i].share; i++ {
		n -= scripts[i].share
	}
	var b strings.Builder
	words := scripts[i].words
	for w := range 5 + rng.IntN(12) {
		if w > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[rng.IntN(len(words))])
	}
	switch rng.IntN(12) {
	case 0:
		b.WriteString(" \"so it was\"; ")
	case 1:
		b.WriteString(":\n- ")
	case 2:
		b.WriteString(".\n\n")
	case 3:
		b.WriteString(" (see `a\\b`).\n")
	default:
		b.WriteString(". ")
	}
	return b.String()
}

// size draws a length in bytes, log-normal around the median.
func size(rng *rand.Rand, median, most int) int {
	n := float64(median) * math.Exp(rng.NormFloat64()*1.1)
	return max(1, min(int(n), most))
}

// text makes a text of about n bytes. No two are alike: each begins with its
// number in the session.
func (p *pool) text(rng *rand.Rand, mark string, n int, code bool) []byte {
	from := p.prose
	if code {
		from = p.code
	}
	b := make([]byte, 0, n+200)
	b = append(append(b, mark...), ' ')
	for len(b) < n {
		b = append(b, from[rng.IntN(len(from))]...)
	}
	return trimRune(b[:max(n, len(mark))])
}

// trimRune takes off a rune that was cut.
func trimRune(b []byte) []byte {
	for i := len(b) - 1; i >= 0 && i >= len(b)-utf8.UTFMax; i-- {
		if utf8.RuneStart(b[i]) {
			if !utf8.FullRune(b[i:]) {
				return b[:i]
			}
			break
		}
	}
	return b
}
