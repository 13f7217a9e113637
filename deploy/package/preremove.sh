#!/bin/sh
# remove is of Debian, 0 of RPM; both call this at upgrades with other words.
set -e
case "$1" in
  remove | 0) if [ -d /run/systemd/system ]; then systemctl disable --now sluice.service; fi ;;
esac
