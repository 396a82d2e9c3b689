#!/usr/bin/env python3
"""Draws terminal text with colours (as `tmux capture-pane -e -p` prints it) as an SVG on standard output.

usage: picture.py [--title TEXT] < capture.txt > docs/statusline.svg
"""
import argparse, html, re, sys, unicodedata

BASE = {30: "#3b4252", 31: "#e06c75", 32: "#98c379", 33: "#e5c07b", 34: "#61afef", 35: "#c678dd", 36: "#56b6c2", 37: "#d8dee9",
        90: "#5c6370", 91: "#ff7b86", 92: "#b5e890", 93: "#ffd68a", 94: "#82c6ff", 95: "#e0a0f5", 96: "#7fd6e0", 97: "#ffffff"}
FG, BG, CELL, LINE, PAD = "#d8dee9", "#1e222a", 8.4, 19, 14


def cube(n):
    if n < 16:
        return BASE[(30 + n) if n < 8 else (82 + n)]
    if n < 232:
        n -= 16
        return "#%02x%02x%02x" % tuple(0 if v == 0 else 55 + 40 * v for v in (n // 36, n // 6 % 6, n % 6))
    return "#" + "%02x" % (8 + 10 * (n - 232)) * 3


def columns(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def runs(line):
    style = {}
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if not part.startswith("\x1b"):
            if part:
                yield dict(style), re.sub(r"\x1b\][^\x07\x1b]*(\x07|\x1b\\)", "", part)
            continue
        codes = [int(c or 0) for c in part[2:-1].split(";")]
        while codes:
            c = codes.pop(0)
            if c == 0:
                style = {}
            elif c in (1, 2, 3):
                style[{1: "bold", 2: "dim", 3: "italic"}[c]] = True
            elif c == 22:
                style.pop("bold", None), style.pop("dim", None)
            elif c == 38 and codes[:1] == [5]:
                style["fg"] = cube(codes[1]); codes = codes[2:]
            elif c == 38 and codes[:1] == [2]:
                style["fg"] = "#%02x%02x%02x" % tuple(codes[1:4]); codes = codes[4:]
            elif c == 39:
                style.pop("fg", None)
            elif c in BASE:
                style["fg"] = BASE[c]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--title", default="")
    a = p.parse_args()
    lines = [l.rstrip("\n") for l in sys.stdin]
    while lines and not lines[-1].strip():
        lines.pop()
    width = max([columns("".join(t for _, t in runs(l))) for l in lines] + [40]) * CELL + 2 * PAD
    height = len(lines) * LINE + 2 * PAD
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img" aria-label="%s">' % (width, height, width, height, html.escape(a.title)),
           '<rect width="100%%" height="100%%" rx="8" fill="%s"/>' % BG,
           '<g font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,\'DejaVu Sans Mono\',monospace" font-size="14" xml:space="preserve">']
    for row, line in enumerate(lines):
        x = 0
        for style, text in runs(line):
            w = columns(text)
            if text.strip():
                extra = ' opacity="0.6"' if style.get("dim") else ""
                extra += ' font-weight="bold"' if style.get("bold") else ""
                out.append('<text x="%.1f" y="%.1f" fill="%s" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>' % (PAD + x * CELL, PAD + row * LINE + 14, style.get("fg", FG), w * CELL, extra, html.escape(text)))
            x += w
    out.append("</g></svg>")
    print("\n".join(out))


main()
