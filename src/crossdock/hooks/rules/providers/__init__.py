"""How each webhook provider signs, what it repeats, how it says hello: a table of recipes (`table.py`).

model.py        Arrival, Refusal, Reply: what goes in and comes out
claims.py       where a request says its signature, time and id
payloads.py     the bytes that were signed
keys.py         secrets as keys, and whether a signature fits
schemes.py      these put together; tokens and passwords
twilio.py, adyen.py   the two that sign no bytes but a reading of the body
challenges.py   requests that want an answer of their own
dedup.py        delivery ids
settings.py     what a user may say of a provider
recipe.py       one provider: all of the above
table.py        all of them
recipes.py      what the rest of the slice needs of it: recipes by name, and checks of settings
"""
