#!/bin/sh
# Serves an annotation study. Variables:
#   MUSIC_EVALS_CAIMAP_PASSWORD   of the account admin: makes a study of your own; without it a demo, its password in the log
#   CAIMAP_DATABASE               URL of PostgreSQL; without it the study is one file in its folder
#   CAIMAP_PROXIES                networks of the proxies in front; without it 10.0.0.0/8, from which the Hub's proxy connects
#   STUDY_FOLDER                  on storage that stays, such as /data/study; without it all is lost when the Space restarts
# Set by the Hub, since the card says hf_oauth: OAUTH_CLIENT_ID, OAUTH_CLIENT_SECRET, OAUTH_SCOPES, OPENID_PROVIDER_URL, SPACE_HOST
set -e
STUDY="${STUDY_FOLDER:-$HOME/study}"
if [ -n "$CAIMAP_DATABASE" ]; then
  set -- --database "$CAIMAP_DATABASE"
fi
if [ -z "$MUSIC_EVALS_CAIMAP_PASSWORD" ]; then
  set -- "$@" --demo
elif [ ! -e "$STUDY/.made" ]; then
  music-evals caimap init "$STUDY" "$@" && touch "$STUDY/.made"
fi
# HTTPS ends at the Hub's proxy, which says so in a header, and for whom it asks
exec music-evals caimap serve "$STUDY" --host 0.0.0.0 --port "${PORT:-7860}" --proxy "${CAIMAP_PROXIES:-10.0.0.0/8}" "$@"
