package ui

import "github.com/earshot-dev/earshot/core/ui/address"

// list has the pages; those with a name are in the navigation, in this order.
func (u *UI) list() []page {
	boardRange := address.Range{From: "now-6h", To: "now"}
	return []page{
		{name: "Slow", pattern: "/slow", title: "Slow delegations", template: "slow.html", style: "slow.css", since: address.Range{From: defaultRecent, To: "now"}, load: u.slow},
		{pattern: "/{$}", title: "Slow delegations", template: "slow.html", style: "slow.css", since: address.Range{From: defaultRecent, To: "now"}, load: u.slow},

		{name: "Conversations", pattern: "/sessions", title: "Conversations", template: "sessions.html", load: u.sessions},
		{pattern: "/session/{id...}", title: "Conversation", template: "session.html", style: "session.css", script: "session.js", untimed: true, load: u.session},

		{pattern: "/trace/{id}", title: "Trace", template: "trace.html", style: "trace.css", script: "trace.js", untimed: true, load: u.trace},
		{pattern: "/trace/{id}/step/{span}", template: "step.html", style: "trace.css", untimed: true, load: u.step},

		{pattern: "/search", title: "Search", template: "search.html", style: "search.css", load: u.search},

		{name: "Boards", pattern: "/boards", title: "Boards", template: "boards.html", style: "board.css", load: u.boards},
		{pattern: "/boards/{name}", template: "board.html", style: "uplot.css board.css", script: "uplot.js board.js", since: boardRange, streamed: true, load: u.board},
		{pattern: "/boards/{name}/{panel}", template: "panel.html", style: "uplot.css board.css", script: "uplot.js board.js", since: boardRange, streamed: true, load: u.board},

		{name: "Cost", pattern: "/cost", title: "Cost", template: "cost.html", style: "cost.css", since: address.Range{From: "now-30d", To: "now"}, load: u.cost},

		{name: "Compare", pattern: "/compare", title: "Compare", template: "compare.html", style: "compare.css", since: address.Range{From: "now-24h", To: "now"}, load: u.compare},

		{name: "Changes", pattern: "/changes", title: "Changes", template: "changes.html", style: "changes.css", since: address.Range{From: "now-7d", To: "now"}, load: u.changes},

		{name: "Now", pattern: "/now", title: "Now", template: "now.html", since: address.Range{From: "now-1h", To: "now"}, load: u.now},

		{name: "Tools", pattern: "/tools", title: "Tools", template: "tools.html", load: u.tools},
	}
}
