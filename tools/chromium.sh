#!/usr/bin/env bash
# Prints the path of a Chromium for the tests of the HTML report: the one that
# CHROMIUM names, else one that is found. Where there is none, it prints nothing,
# and the tests are skipped; with CHROMIUM_REQUIRED=1 it installs Debian's, or fails.
set -euo pipefail

say() { printf 'chromium: %s\n' "$*" >&2; }

# limited SECONDS COMMAND... ends a command that hangs; macOS has no timeout.
limited() {
  if command -v timeout >/dev/null; then
    timeout --kill-after=10 "$@"
  else
    "${@:2}"
  fi
}

# answering prints the first of some browsers that answers: Ubuntu's chromium-browser
# may be a script that only asks for a snap.
answering() {
  local name path
  for name in "$@"; do
    if path=$(command -v "$name") && limited 60 "$path" --version >/dev/null 2>&1; then
      printf '%s\n' "$path"
      return
    fi
  done
  return 1
}

# cannot_install prints why Debian's package cannot be installed here.
cannot_install() {
  if ! grep -qs '^ID=debian$' /etc/os-release; then
    echo "this is not Debian"
  elif [ "$(id -u)" != 0 ] && ! sudo -n true 2>/dev/null; then
    echo "that takes root, or sudo without a password"
  else
    return 1
  fi
}

# apt_get SECONDS ARGUMENT... runs apt-get as root. It never prompts, waits for
# mirrors and locks for a bounded time, and prints only if it fails.
apt_get() {
  local seconds=$1 log
  shift
  set -- env DEBIAN_FRONTEND=noninteractive apt-get -qq -y \
    -o Acquire::Retries=3 -o Acquire::http::Timeout=30 -o Acquire::https::Timeout=30 \
    -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "$@"
  [ "$(id -u)" = 0 ] || set -- sudo -n "$@"
  if ! log=$(limited "$seconds" "$@" 2>&1 </dev/null); then
    tail -n 5 <<<"$log" >&2
    return 1
  fi
}

install_package() {
  local pause
  for pause in 0 10 30; do
    sleep "$pause"
    say "none found, installing Debian's package"
    if apt_get 180 update && apt_get 600 install --no-install-recommends chromium fonts-dejavu-core; then return; fi
  done
  return 1
}

if [ -n "${CHROMIUM:-}" ]; then
  answering "$CHROMIUM" || { say "CHROMIUM is $CHROMIUM, which does not answer"; exit 1; }
  exit
fi
names=(chromium chromium-browser google-chrome google-chrome-stable "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome")
if answering "${names[@]}"; then exit; fi
if [ -z "${CHROMIUM_REQUIRED:-}" ]; then
  say "none found; the tests in a browser are skipped (install it, or set CHROMIUM to the path of one)"
  exit
fi
if why=$(cannot_install); then
  say "none found, and it cannot be installed here: $why. Install it, or set CHROMIUM to the path of one"
  exit 1
fi
install_package || { say "the package could not be installed, in three tries; the tests in a browser are required here"; exit 1; }
answering "${names[@]}" || { say "installed, and it does not answer"; exit 1; }
